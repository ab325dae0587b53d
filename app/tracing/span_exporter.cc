#include "app/tracing/span_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <utility>

#include "app/config/version.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

namespace json = boost::json;

constexpr Duration kBetweenLines = std::chrono::minutes(1);
constexpr std::array kTriedAgain = {429, 502, 503, 504};

TimePoint now() { return std::chrono::steady_clock::now(); }
bool is_success(int status) { return status / 100 == 2; }
bool may_try_again(int status) { return std::ranges::find(kTriedAgain, status) != kTriedAgain.end(); }

std::uint64_t spans_of(const std::vector<api::tracing::RequestSpan>& batch) {
  std::uint64_t spans = 0;
  for (const api::tracing::RequestSpan& one : batch) spans += num_spans(one);
  return spans;
}

// Number in {"partialSuccess":{"rejectedSpans":"3"}}; 0 if the reply has none or is not JSON.
std::uint64_t rejected_of(const std::string& reply) {
  json::error_code error;
  const json::value parsed = json::parse(reply, error);
  if (error) return 0;
  const json::value* const found = parsed.find_pointer("/partialSuccess/rejectedSpans", error);
  if (found == nullptr) return 0;
  std::uint64_t number = 0;
  if (found->is_string()) {
    const json::string& digits = found->get_string();
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
  } else if (found->is_int64() && found->get_int64() > 0) {
    number = static_cast<std::uint64_t>(found->get_int64());
  }
  return number;
}

}  // namespace

SpanExporter::SpanExporter(const ExportLimits& limits, api::tracing::Resource resource, TraceReceiver& receiver,
                           observe::Metrics& metrics)
    : limits_(limits),
      resource_(std::move(resource)),
      receiver_(receiver),
      metrics_(metrics),
      queue_(limits.max_queue),
      thread_([this] { run(); }) {}

void SpanExporter::stop(Duration within) {
  if (!thread_.joinable()) return;
  const TimePoint last = now() + within;
  end_.store(last.time_since_epoch().count(), std::memory_order_release);
  receiver_.give_up_at(last);
  queue_.close();
  thread_.join();
}

void SpanExporter::run() {
  for (;;) {
    const Batch batch = queue_.take(limits_.max_batch, limits_.delay);
    if (batch.empty()) break;
    deliver(batch);
    if (metrics_.trace_spans_without_room.value() != 0) say_dropped("the export queue was full");
  }
  reported_at_ = {};  // the last line is logged in any case
  say_dropped(std::exchange(why_, {}));
}

void SpanExporter::deliver(const Batch& batch) {
  const std::uint64_t spans = spans_of(batch);
  const std::string body = api::tracing::otlp_json(resource_, kVersion, batch);
  Duration wait = limits_.first_wait;
  for (std::uint32_t attempt = 1;; ++attempt) {
    if (ending() && now() >= end()) return drop(spans, "the server is shutting down");
    const Result<ReceiverReply> reply =
        receiver_.send(body, ending() ? std::min(limits_.timeout, end() - now()) : limits_.timeout);
    if (reply && is_success(reply->status)) return note_taken(spans, reply->body);
    const std::string why =
        reply ? fmt::format("the receiver answered with status {}", reply->status) : reply.error().message;
    const bool again = !reply || may_try_again(reply->status);
    if (!again || attempt >= limits_.attempts || ending()) return drop(spans, why);
    const Duration asked = reply ? reply->retry_after.value_or(wait) : wait;
    queue_.pause(std::min(std::max(wait, asked), limits_.longest_wait));
    wait = std::min(2 * wait, limits_.longest_wait);
  }
}

void SpanExporter::note_taken(std::uint64_t spans, const std::string& reply) {
  const std::uint64_t rejected = std::min(spans, rejected_of(reply));
  metrics_.trace_spans_sent.add(spans - rejected);
  if (rejected == 0) return;
  metrics_.trace_spans_rejected.add(rejected);
  say_dropped("the receiver rejected spans of a batch");
}

void SpanExporter::drop(std::uint64_t spans, const std::string& why) {
  metrics_.trace_spans_not_sent.add(spans);
  say_dropped(why);
}

void SpanExporter::say_dropped(const std::string& why) {
  why_ = why;
  const std::uint64_t dropped = metrics_.trace_spans_without_room.value() + metrics_.trace_spans_not_sent.value() +
                                metrics_.trace_spans_rejected.value();
  const bool due = reported_at_ == TimePoint{} || now() - reported_at_ >= kBetweenLines;
  if (dropped == num_reported_ || !due) return;
  log_warn("trace_spans_dropped", "spans={} why={}", dropped - num_reported_, log_safe(why));
  num_reported_ = dropped;
  reported_at_ = now();
}

}  // namespace quire::app
