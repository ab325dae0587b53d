#include "api/admin/cache_orders.h"

#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/json/json_values.h"
#include "api/json/response_writer.h"
#include "api/wire/errors.h"
#include "core/base/check.h"

namespace quire::api::admin {
namespace {

constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxDepth = 4;
constexpr std::size_t kMinParserBytes = 64;

Error no_file_name() {
  return invalid("path", "path must be a plain file name: 1 to " + std::to_string(kMaxNameBytes) +
                             " characters of A-Z a-z 0-9 . _ -, the first not a dot");
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

// The fields of `body`; they are views into `parser`.
Result<simdjson::dom::object> fields_of(const std::string& body, simdjson::dom::parser& parser) {
  simdjson::dom::element root;
  if (const auto error = parser.allocate(std::max(body.size(), kMinParserBytes), kMaxDepth)) {
    return parse_failure(error);
  }
  if (const auto error = parser.parse(body).get(root)) return parse_failure(error);
  if (!root.is_object()) return invalid("", "the body must be a JSON object");
  return object_of(root);
}

}  // namespace

Result<std::string> cache_file_name(const std::string& body) {
  simdjson::dom::parser parser;
  const Result<simdjson::dom::object> fields = fields_of(body, parser);
  if (!fields) return fields.error();
  std::optional<std::string> name;
  for (const auto field : *fields) {
    if (field.key != "path") return unknown_field(echoed(field.key));
    if (name) return invalid("path", "path is given twice");
    std::string_view text;
    if (field.value.get_string().get(text) != simdjson::SUCCESS) return no_file_name();
    name = std::string(text);
  }
  if (!name) return invalid("path", "path is missing");
  if (name->empty() || name->size() > kMaxNameBytes || name->front() == '.') return no_file_name();
  if (!std::all_of(name->begin(), name->end(), is_plain)) return no_file_name();
  return std::move(*name);
}

Result<Done> check_no_fields(const std::string& body) {
  if (body.empty()) return Done{};
  simdjson::dom::parser parser;
  const Result<simdjson::dom::object> fields = fields_of(body, parser);
  if (!fields) return fields.error();
  if (fields->size() == 0) return Done{};
  return unknown_field(echoed((*fields->begin()).key));
}

CacheOrder::CacheOrder(const Services& services, http::Request request, bridge::ControlOrder::Kind kind)
    : services_(services),
      kind_(kind),
      body_(std::move(request.body)),
      path_(no_file_name()),
      outcome_(std::make_shared<std::optional<Result<bridge::CacheReport>>>()) {}

std::optional<Lane> CacheOrder::work(Lane, Allowance&) {
  if (kind_ != bridge::ControlOrder::Kind::kClearCache) {
    path_ = file();
  } else if (const Result<Done> nothing = check_no_fields(body_); nothing) {
    path_ = std::string();
  } else {
    path_ = nothing.error();
  }
  return std::nullopt;
}

Result<std::string> CacheOrder::file() const {
  if (services_.cache_dir.empty()) {
    return Error{Code::kNotFound, "saving and loading the cache is off: start the server with --cache-dir DIR", "", 0};
  }
  Result<std::string> name = cache_file_name(body_);
  if (!name) return name;
  return services_.cache_dir + "/" + *name;
}

std::optional<http::Response> CacheOrder::admit(const http::IoHandle& io_handle) {
  if (!path_) return error_response(path_.error());
  bridge::ControlOrder order{
      kind_, *path_,
      [post = io_handle.post, events = io_handle.on_events, outcome = outcome_](Result<bridge::CacheReport> report) {
        post([events, outcome, report = std::move(report)] {
          if (!*outcome) *outcome = report;
          events();
        });
      }};
  const Result<Done> given = services_.control.give(std::move(order));
  if (!given) return error_response(given.error());
  return std::nullopt;
}

http::Response CacheOrder::whole() {
  CHECK(finished());
  const Result<bridge::CacheReport>& outcome = **outcome_;
  if (!outcome) return error_response(outcome.error());
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("object").text("cache_report").key("blocks").number(outcome->num_blocks);
  json.key("bytes").number(outcome->num_bytes).key("skipped").number(outcome->num_skipped).end_object();
  return response;
}

void CacheOrder::fail(Error error) {
  if (!finished()) *outcome_ = std::move(error);
}

}  // namespace quire::api::admin
