#include "api/wire/errors.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "api/json/response_writer.h"
#include "api/wire/headers.h"
#include "api/wire/workers.h"

namespace quire::api {
namespace {

struct Row {
  int status;
  const char* type;       // in OpenAI's shape
  const char* anthropic;  // type in Anthropic's shape
};

constexpr const char* kInvalid = "invalid_request_error";

Row row_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return {400, kInvalid, kInvalid};
    case Code::kUnauthorized:
      return {401, "authentication_error", "authentication_error"};
    case Code::kForbidden:
      return {403, "permission_error", "permission_error"};
    case Code::kNotFound:
      return {404, "not_found_error", "not_found_error"};
    case Code::kMethodNotAllowed:
      return {405, kInvalid, kInvalid};
    case Code::kTimeout:
      return {408, "timeout_error", "timeout_error"};
    case Code::kTooLarge:
      return {413, kInvalid, "request_too_large"};
    case Code::kUnsupportedMedia:
      return {415, kInvalid, kInvalid};
    case Code::kQueueFull:
      return {429, "rate_limit_error", "rate_limit_error"};
    case Code::kHeaderTooLarge:
      return {431, kInvalid, "request_too_large"};
    case Code::kCancelled:
      // nginx's status for a client that left: then only logs show it. A cancelled request that scores or embeds its
      // prompt is answered with it, too.
      return {499, "cancelled_error", "api_error"};
    case Code::kInternal:
      return {500, "server_error", "api_error"};
    case Code::kUnavailable:
      return {503, "unavailable_error", "overloaded_error"};
    case Code::kOutOfBlocks:
      return {503, "unavailable_error", "overloaded_error"};
    case Code::kDeadline:
      return {504, "timeout_error", "timeout_error"};
  }
  return {500, "server_error", "api_error"};
}

Row row_of(http::Fault fault) {
  switch (fault) {
    case http::Fault::kMalformed:
      return row_of(Code::kInvalidArgument);
    case http::Fault::kHeadTooLarge:
      return row_of(Code::kHeaderTooLarge);
    case http::Fault::kBodyTooLarge:
      return row_of(Code::kTooLarge);
    case http::Fault::kTooSlow:
      return row_of(Code::kTimeout);
    case http::Fault::kUnknownExpectation:
      return {417, kInvalid, kInvalid};
    case http::Fault::kUnsupportedVersion:
      return {505, kInvalid, kInvalid};
  }
  return row_of(Code::kInternal);
}

std::string json_of(Row row, std::string_view message, std::string_view param, const char* reason, ErrorShape shape) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  if (shape == ErrorShape::kAnthropic) json.key("type").text("error");
  json.key("error").begin_object();
  json.key("message").text(message);
  json.key("type").text(shape == ErrorShape::kAnthropic ? row.anthropic : row.type).key("param");
  if (param.empty()) {
    json.null();
  } else {
    json.text(param);
  }
  json.key("code");
  reason == nullptr ? json.number(std::int64_t{row.status}) : json.text(reason);
  json.end_object().end_object();
  return out;
}

}  // namespace

Error took_too_long() {
  const auto limit_s = std::chrono::duration_cast<std::chrono::seconds>(Workers::kSlowTime).count();
  return {Code::kUnavailable,
          "reading this request takes more than " + std::to_string(limit_s) +
              " s of CPU time: send a smaller request, or try again later",
          "", 1};
}

int status_of(Code code) { return row_of(code).status; }
const char* type_of(Code code) { return row_of(code).type; }
int status_of(http::Fault fault) { return row_of(fault).status; }

http::ReportedError reported(const Error& error) {
  return {error.reason != nullptr ? error.reason : type_of(error.code), error.message, error.param};
}

std::string error_json(const Error& error, ErrorShape shape) {
  return json_of(row_of(error.code), error.message, error.param, error.reason, shape);
}

http::Response error_response(const Error& error, ErrorShape shape) {
  http::Response response;
  response.status = status_of(error.code);
  response.body = error_json(error, shape);
  response.error = reported(error);
  if (error.code == Code::kQueueFull || error.code == Code::kUnavailable || error.code == Code::kOutOfBlocks) {
    response.fields.push_back({http::kRetryAfterHeader, std::to_string(std::max(1, error.retry_after_s))});
  }
  if (error.code == Code::kUnauthorized) response.fields.push_back({http::kAuthenticateHeader, "Bearer"});
  return response;
}

http::Response error_response(const http::Refusal& refusal, ErrorShape shape) {
  http::Response response;
  response.status = status_of(refusal.fault);
  response.body = json_of(row_of(refusal.fault), refusal.message, {}, nullptr, shape);
  response.error = http::ReportedError{row_of(refusal.fault).type, refusal.message, {}};
  return response;
}

}  // namespace quire::api
