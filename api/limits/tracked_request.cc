#include "api/limits/tracked_request.h"

#include <utility>

#include "api/wire/headers.h"
#include "api/wire/response_head.h"

namespace quire::api::requests {
namespace {

std::shared_ptr<requests::RequestRecord> record_of(const http::Request& request) {
  auto record = std::make_shared<requests::RequestRecord>();
  record->key = request.key.empty() ? http::random_id() : request.key;
  if (request.caller) record->owner = request.caller->name;
  record->path = request.path;
  record->arrival = request.arrival;
  return record;
}

}  // namespace

bool is_request_key(std::string_view key) {
  return key.empty() || (key.size() >= http::kMinRequestKeyBytes && http::is_plain_id(key, http::kMaxRequestKeyBytes));
}

TrackedRequest::TrackedRequest(requests::RequestBook& book, const http::Request& request)
    : book_(book), record_(record_of(request)) {}

TrackedRequest::~TrackedRequest() {
  if (entered_) book_.leave(record_);
}

void TrackedRequest::add_sequence(const std::shared_ptr<bridge::TokenStream>& stream) {
  record_->timelines.push_back(stream->timeline());
  add_stream(stream);
}

void TrackedRequest::add_stream(const std::shared_ptr<bridge::TokenStream>& stream) {
  record_->streams.push_back(stream);
}

void TrackedRequest::enter(const std::string& id, RequestRecord::Asked asked) {
  record_->id = id;
  record_->asked = std::move(asked);
  entered_ = true;
  book_.enter(record_);
}

void TrackedRequest::withdraw() {
  entered_ = false;
  book_.withdraw(record_);
}

bool TrackedRequest::cancelled() const { return record_->cancelled.load(std::memory_order_acquire); }

std::vector<http::Field> TrackedRequest::fields() const {
  if (!entered_) return {};
  return {{http::kRequestKeyHeader, record_->key}};
}

void TrackedRequest::append_timings(std::string& json, const TokenCounts& counts) const {
  requests::append_timings(json, record_->timelines, counts);
}

}  // namespace quire::api::requests
