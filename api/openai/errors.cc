#include "api/openai/errors.h"

#include <algorithm>
#include <string_view>

#include "api/openai/response_writer.h"

namespace quire::api::openai {
namespace {

struct Row {
  int status;
  const char* type;
};

constexpr std::string_view kInvalid = "invalid_request_error";

Row row_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return {400, kInvalid.data()};
    case Code::kUnauthorized:
      return {401, "authentication_error"};
    case Code::kNotFound:
      return {404, "not_found_error"};
    case Code::kMethodNotAllowed:
      return {405, kInvalid.data()};
    case Code::kTimeout:
      return {408, "timeout_error"};
    case Code::kTooLarge:
      return {413, kInvalid.data()};
    case Code::kUnsupportedMedia:
      return {415, kInvalid.data()};
    case Code::kQueueFull:
      return {429, "rate_limit_error"};
    case Code::kHeaderTooLarge:
      return {431, kInvalid.data()};
    case Code::kCancelled:
      return {499, "cancelled_error"};  // nginx's number: nobody is left to read it, logs are
    case Code::kInternal:
      return {500, "server_error"};
    case Code::kUnavailable:
      return {503, "unavailable_error"};
    case Code::kOutOfBlocks:
      return {503, "unavailable_error"};
    case Code::kDeadline:
      return {504, "timeout_error"};
  }
  return {500, "server_error"};
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
    case http::Fault::kLengthRequired:
      return {411, kInvalid.data()};
    case http::Fault::kUnknownExpectation:
      return {417, kInvalid.data()};
    case http::Fault::kUnsupportedVersion:
      return {505, kInvalid.data()};
  }
  return row_of(Code::kInternal);
}

std::string json_of(Row row, std::string_view message, std::string_view param) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("error").begin_object();
  json.key("message").text(message).key("type").text(row.type).key("param");
  if (param.empty()) {
    json.null();
  } else {
    json.text(param);
  }
  json.key("code").number(std::int64_t{row.status}).end_object().end_object();
  return out;
}

}  // namespace

int status_of(Code code) { return row_of(code).status; }
int status_of(http::Fault fault) { return row_of(fault).status; }

std::string error_json(const Error& error) { return json_of(row_of(error.code), error.message, error.param); }

http::Response error_response(const Error& error) {
  http::Response response;
  response.status = status_of(error.code);
  response.body = error_json(error);
  if (error.code == Code::kQueueFull || error.code == Code::kUnavailable || error.code == Code::kOutOfBlocks) {
    response.fields.push_back({"Retry-After", std::to_string(std::max(1, error.retry_after_s))});
  }
  return response;
}

http::Response error_response(const http::Refusal& refusal) {
  http::Response response;
  response.status = status_of(refusal.fault);
  response.body = json_of(row_of(refusal.fault), refusal.message, {});
  return response;
}

}  // namespace quire::api::openai
