#include "api/openapi/operation_writer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/limits/gate.h"
#include "api/openapi/type_schema.h"
#include "api/services/slo_hints.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"

namespace quire::api {
namespace {

// ---- headers

void write_header_schema(JsonWriter& json, const http::Header& header) {
  json.key("description").text(header.help).key("schema").begin_object();
  if (header.highest > 0.0) {
    json.key("type").text("number").key("minimum").number(header.lowest);
    if (std::isfinite(header.highest)) json.key("maximum").number(header.highest);
  } else {
    json.key("type").text("string");
    if (header.min_bytes > 0) json.key("minLength").number(std::uint64_t{header.min_bytes});
    if (header.max_bytes > 0) json.key("maxLength").number(std::uint64_t{header.max_bytes});
  }
  json.end_object();
}

void write_answer_headers(JsonWriter& json, std::uint8_t paths, bool refusal) {
  json.key("headers").begin_object();
  for (const http::AnswerHeader& one : http::answer_headers()) {
    if ((one.header.paths & paths) == 0 || !(refusal ? one.with_refusal : one.with_answer)) continue;
    json.key(one.header.name).begin_object();
    json.key("$ref").text("#/components/headers/" + std::string(one.header.name)).end_object();
  }
  json.end_object();
}

void write_request_headers(JsonWriter& json, std::span<const http::Header> headers, std::uint8_t paths) {
  for (const http::Header& one : headers) {
    if ((one.paths & paths) == 0) continue;
    json.begin_object().key("name").text(one.name).key("in").text("header").key("required").boolean(false);
    write_header_schema(json, one);
    json.end_object();
  }
}

// A path may have one path parameter, {name}.
void write_parameters(JsonWriter& json, const Operation& operation) {
  json.key("parameters").begin_array();
  if (const std::size_t open = operation.path.find('{'); open != std::string_view::npos) {
    const std::string_view name = operation.path.substr(open + 1, operation.path.find('}') - open - 1);
    json.begin_object().key("name").text(name).key("in").text("path").key("required").boolean(true);
    json.key("description").text(name == "model" ? "a served name" : "id of a request, or of its answer");
    json.key("schema").begin_object().key("type").text("string").end_object().end_object();
  }
  write_request_headers(json, http::request_headers(), operation.paths);
  write_request_headers(json, requests::slo_hint_headers(), operation.paths);
  json.end_array();
}

// ---- the body of the request

void write_request(JsonWriter& json, const Operation& operation, const Services& services) {
  json.key("requestBody").begin_object().key("required").boolean(!operation.body_may_be_absent);
  json.key("content").begin_object().key("application/json").begin_object().key("schema").begin_object();
  write_type(json, operation.body);
  json.end_object().key("example").begin_object();
  const bool has_model = std::ranges::find(bodies(), operation.body, &Body::name) != bodies().end();
  if (has_model) json.key("model").text(services.model_names.front());
  if (!operation.request.empty()) json.written(operation.request);
  json.end_object().end_object().end_object().end_object();
}

// ---- answers

void write_media(JsonWriter& json, std::string_view media, std::string_view type, bool has_example) {
  json.key(media).begin_object().key("schema").begin_object();
  write_type(json, type);
  json.end_object();
  if (has_example) write_example(json.key("example"), type);
  json.end_object();
}

void write_answer(JsonWriter& json, const Operation& operation) {
  constexpr std::string_view kStreams =
      "the answer; with \"stream\": true, server-sent events, of which the schema describes the data of each";
  std::string words(operation.events.empty() ? "the answer" : kStreams);
  if (!operation.last_event.empty()) words += ". The data of the last is " + std::string(operation.last_event);
  json.key("200").begin_object().key("description").text(words);
  write_answer_headers(json, operation.paths, /*refusal=*/false);
  if (!operation.answer.empty()) {
    json.key("content").begin_object();
    write_media(json, operation.media, operation.answer, operation.answer != "string");
    if (!operation.events.empty()) write_media(json, "text/event-stream", operation.events, true);
    json.end_object();
  }
  json.end_object();
}

// Reasons for which an operation may be refused.
enum Reason : std::uint8_t {
  kHasBody = 1,
  kGeneratesTokens = 2,
  kNames = 4,
  kIsOrder = 8,    // of an administrator
  kNeedsKey = 16,  // on a server with API keys
  kIsProbe = 32,
};

struct Refusal {
  Code code;
  unsigned reasons;
  std::string_view help;
};

constexpr Refusal kRefusals[] = {
    {Code::kInvalidArgument, kHasBody,
     "a field is wrong, or the request exceeds a limit: tokens, steps of the chat template, steps and states of a "
     "grammar, bytes of prompts that answers repeat. The message names the field and the limit"},
    {Code::kUnauthorized, kNeedsKey, "there is no API key, or the server does not know it"},
    {Code::kForbidden, kNeedsKey | kIsOrder,
     "the API key's role does not allow it, or a web page of another origin has sent it"},
    {Code::kNotFound, kNames | kGeneratesTokens,
     "the model, the request or the file is not there, or the server was started without this path"},
    {Code::kTooLarge, kHasBody, "the body is larger than --body-limit"},
    {Code::kUnsupportedMedia, kHasBody, "the body is not application/json, or is compressed"},
    {Code::kQueueFull, kGeneratesTokens,
     "try again after Retry-After: the waiting line is full, a limit of the API key is reached, request bodies being "
     "received use too much memory, or too many request bytes are waiting to be parsed (one caller may use 3/4 of "
     "either)"},
    {Code::kCancelled, kGeneratesTokens, "the request was cancelled by id before it had an answer"},
    {Code::kUnavailable, kHasBody | kIsProbe,
     "try again after Retry-After: the server is loading, draining or has failed, or reading the request takes more "
     "CPU time than allowed (10 s, for a grammar 2 s)"},
    {Code::kDeadline, kGeneratesTokens, "the answer would be complete after its deadline"},
};

unsigned reasons_of(const Operation& operation, bool needs_key) {
  unsigned reasons = 0;
  if (!operation.body.empty()) reasons |= kHasBody;
  if ((operation.paths & http::kGenerating) != 0) reasons |= kGeneratesTokens;
  if (operation.names) reasons |= kNames;
  if (keys::access_of(operation.path) == keys::Access::kAdmin) reasons |= kIsOrder;
  if (needs_key) reasons |= kNeedsKey;
  if (!operation.unavailable.empty()) reasons |= kIsProbe;
  return reasons;
}

void write_responses(JsonWriter& json, const Operation& operation, bool needs_key) {
  json.key("responses").begin_object();
  write_answer(json, operation);
  const auto write_refusal = [&](const std::string& status, std::string_view help, std::string_view type,
                                 bool has_example) {
    json.key(status).begin_object().key("description").text(help);
    write_answer_headers(json, operation.paths, /*refusal=*/true);
    json.key("content").begin_object();
    write_media(json, "application/json", type, has_example);
    json.end_object().end_object();
  };
  const unsigned reasons = reasons_of(operation, needs_key);
  for (const Refusal& one : kRefusals) {
    if ((one.reasons & reasons) == 0) continue;
    const bool is_other = one.code == Code::kUnavailable && !operation.unavailable.empty();
    write_refusal(std::to_string(status_of(one.code)), one.help, is_other ? operation.unavailable : operation.error,
                  one.code == Code::kInvalidArgument);
  }
  write_refusal("default", "an error", operation.error, false);
  json.end_object();
}

}  // namespace

void write_answer_headers(JsonWriter& json) {
  json.begin_object();
  for (const http::AnswerHeader& one : http::answer_headers()) {
    json.key(one.header.name).begin_object();
    write_header_schema(json, one.header);
    json.end_object();
  }
  json.end_object();
}

void write_operation(JsonWriter& json, const Operation& operation, const Services& services) {
  const bool has_keys = services.keys != nullptr;
  const bool needs_key = has_keys && keys::access_of(operation.path) != keys::Access::kOpen;
  json.begin_object().key("operationId").text(operation.id);
  json.key("tags").begin_array().text(operation.tag).end_array().key("summary").text(operation.summary);
  if (has_keys && !needs_key) json.key("security").begin_array().end_array();
  write_parameters(json, operation);
  if (!operation.body.empty()) write_request(json, operation, services);
  write_responses(json, operation, needs_key);
  json.end_object();
}

}  // namespace quire::api
