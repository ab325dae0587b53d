#include "api/openapi/openapi.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/chat/chat_request.h"
#include "api/completions/completion_request.h"
#include "api/embeddings/embedding_request.h"
#include "api/json/response_writer.h"
#include "api/messages/messages_request.h"
#include "api/openapi/field_schema.h"
#include "api/responses/responses_request.h"
#include "api/services/slo_hints.h"
#include "api/tokenize/tokenize.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"

namespace quire::api {
namespace {

// ---- paths whose body a table of fields describes

struct Described {
  std::string_view path;
  std::string_view summary;
  Endpoint endpoint;
  std::span<const Field> (*own)();
  std::array<std::string_view, 2> required;  // required fields, two at most
  bool streams;
  bool generates = false;  // its sequences go through the waiting line
  bool lists = false;      // the answer is a list
};

constexpr Described kDescribed[] = {
    {"/v1/completions", "Continue prompts", kCompletions, completion_fields, {"prompt"}, true, true},
    {"/v1/completions/render",
     "Token ids and parameters of prompts",
     kCompletions,
     completion_fields,
     {"prompt"},
     false,
     false,
     true},
    {"/v1/chat/completions", "Answer a conversation", kChat, chat::chat_fields, {"messages"}, true, true},
    {"/v1/chat/completions/render",
     "Prompt, token ids and parameters of a conversation",
     kChat,
     chat::chat_fields,
     {"messages"},
     false},
    {"/v1/responses",
     "Answer a conversation (OpenAI's Responses API)",
     kResponses,
     responses::responses_fields,
     {"input"},
     true,
     true},
    {"/v1/messages",
     "Answer a conversation (Anthropic's Messages API)",
     kMessages,
     messages::messages_fields,
     {"messages", "max_tokens"},
     true,
     true},
    {"/v1/messages/count_tokens",
     "Length of a conversation in tokens",
     kCountTokens,
     messages::messages_fields,
     {"messages"},
     false},
    {"/v1/embeddings", "Embed texts as vectors", kEmbeddings, embedding_fields, {"input"}, false, true},
    {"/tokenize", "Token ids of a text or a conversation", kTokenize, tokenize_fields, {}, false},
    {"/detokenize", "Text of token ids", kDetokenize, detokenize_fields, {"tokens"}, false},
};

// ---- other paths

struct Plain {
  std::string_view path;  // {name} is a path parameter
  std::string_view method;
  std::string_view summary;
  std::string_view media;
  std::uint8_t paths = http::kEveryPath;  // bits of http::Paths: selects its headers
};

constexpr std::uint8_t kNamed = http::kEveryPath | http::kNamedRequests;

constexpr Plain kPlain[] = {
    {"/live", "get", "Liveness", "application/json"},
    {"/ready", "get", "Readiness", "application/json"},
    {"/startup", "get", "Startup: done once the server has been ready", "application/json"},
    {"/health", "get", "Liveness and readiness", "application/json"},
    {"/ping", "get", "The same with an empty body", "application/json"},
    {"/load", "get", "Number of running and waiting sequences", "application/json"},
    {"/tokenizer_info", "get", "Settings of the tokenizer, with --tokenizer-info on", "application/json"},
    {"/metrics", "get", "Counters, gauges and histograms for Prometheus", "text/plain"},
    {"/version", "get", "Version of the server", "application/json"},
    {"/openapi.json", "get", "This document", "application/json"},
    {"/v1/models", "get", "Served models", "application/json"},
    {"/v1/models/{model}", "get", "One served model", "application/json"},
    {"/v1/requests/{id}/explain", "get", "Timeline and state of a request", "application/json", kNamed},
    {"/v1/requests/{id}", "delete", "Cancel a running request", "application/json", kNamed},
};

constexpr std::string_view kCacheFilePaths[] = {"/admin/cache/save", "/admin/cache/load"};
constexpr std::string_view kCacheClearPath = "/admin/cache/clear";

// ---- parts that paths share

// `schema` refers to a component (#/...), or is the name of a JSON type.
void write_media(JsonWriter& json, std::string_view media, std::string_view schema) {
  json.key(media).begin_object().key("schema").begin_object();
  if (!schema.starts_with('#')) {
    json.key("type").text(schema);
  } else {
    json.key("$ref").text(schema);
  }
  json.end_object().end_object();
}

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
    write_header_schema(json, one.header);
    json.end_object();
  }
  json.end_object();
}

// Errors of paths that generate, with the limits behind them.
constexpr std::pair<Code, std::string_view> kRefusals[] = {
    {Code::kInvalidArgument,
     "a field is wrong, or the request exceeds a limit: tokens, steps of the chat template, steps and states of a "
     "grammar, bytes of prompts that answers repeat. The message names the field and the limit"},
    {Code::kTooLarge, "the body is larger than --body-limit"},
    {Code::kQueueFull,
     "try again after Retry-After: the waiting line is full, a limit of the API key is reached, request bodies being "
     "received use too much memory, or too many request bytes are waiting to be parsed (one caller may use 3/4 of "
     "either)"},
    {Code::kUnavailable,
     "try again after Retry-After: the server is loading, draining or has failed, or reading the request takes more "
     "CPU time than allowed (10 s, for a grammar 2 s)"},
};

void write_responses(JsonWriter& json, std::string_view media, std::string_view type, bool streams,
                     std::uint8_t paths) {
  json.key("responses").begin_object();
  json.key("200").begin_object().key("description").text("the answer");
  write_answer_headers(json, paths, /*refusal=*/false);
  json.key("content").begin_object();
  write_media(json, media, type);
  if (streams) write_media(json, "text/event-stream", "string");
  json.end_object().end_object();
  const auto write_refusal = [&](const std::string& status, std::string_view description) {
    json.key(status).begin_object().key("description").text(description);
    write_answer_headers(json, paths, /*refusal=*/true);
    json.key("content").begin_object();
    write_media(json, "application/json", "#/components/schemas/Error");
    json.end_object().end_object();
  };
  if ((paths & http::kGenerating) != 0) {
    for (const auto& [code, description] : kRefusals) write_refusal(std::to_string(status_of(code)), description);
  }
  write_refusal("default", "an error");
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

// `path` may have one path parameter, {name}.
void write_parameters(JsonWriter& json, std::string_view path, std::uint8_t paths) {
  json.key("parameters").begin_array();
  if (const std::size_t open = path.find('{'); open != std::string_view::npos) {
    const std::string_view name = path.substr(open + 1, path.find('}') - open - 1);
    json.begin_object().key("name").text(name).key("in").text("path").key("required").boolean(true);
    json.key("schema").begin_object().key("type").text("string").end_object().end_object();
  }
  write_request_headers(json, http::request_headers(), paths);
  write_request_headers(json, requests::slo_hint_headers(), paths);
  json.end_array();
}

template <typename WriteSchema>
void write_body(JsonWriter& json, WriteSchema write_schema) {
  json.key("requestBody").begin_object().key("required").boolean(true).key("content").begin_object();
  json.key("application/json").begin_object().key("schema");
  write_schema();
  json.end_object().end_object().end_object();
}

void write_described(JsonWriter& json, const Described& one, const RequestLimits& limits) {
  const std::uint8_t paths = http::kEveryPath | http::kPosts | (one.generates ? http::kGenerating : 0);
  json.key(one.path).begin_object().key("post").begin_object().key("summary").text(one.summary);
  write_parameters(json, one.path, paths);
  const auto num_required =
      static_cast<std::size_t>(std::ranges::count_if(one.required, [](auto name) { return !name.empty(); }));
  const auto required = std::span<const std::string_view>(one.required).first(num_required);
  write_body(json, [&] { write_body_schema(json, one.endpoint, one.own(), required, limits); });
  write_responses(json, "application/json", one.lists ? "array" : "object", one.streams, paths);
  json.end_object().end_object();
}

void write_plain(JsonWriter& json, const Plain& one) {
  json.key(one.path).begin_object().key(one.method).begin_object().key("summary").text(one.summary);
  write_parameters(json, one.path, one.paths);
  write_responses(json, one.media, one.media == "application/json" ? "object" : "string", false, one.paths);
  json.end_object().end_object();
}

void write_cache_file_order(JsonWriter& json, std::string_view path) {
  json.key(path).begin_object().key("post").begin_object().key("summary").text(
      "Save the prefix cache to a file, or load it from one");
  write_parameters(json, path, http::kEveryPath);
  write_body(json, [&json] {
    json.begin_object().key("type").text("object").key("required").begin_array().text("path").end_array();
    json.key("properties").begin_object().key("path").begin_object().key("type").text("string");
    json.key("description").text("a plain file name in --cache-dir").end_object().end_object();
    json.key("additionalProperties").boolean(false).end_object();
  });
  write_responses(json, "application/json", "object", false, http::kEveryPath);
  json.end_object().end_object();
}

void write_cache_clear_order(JsonWriter& json) {
  json.key(kCacheClearPath).begin_object().key("post").begin_object().key("summary").text("Clear the prefix cache");
  write_parameters(json, kCacheClearPath, http::kEveryPath);
  write_body(json, [&json] {
    json.begin_object().key("type").text("object").key("additionalProperties").boolean(false).end_object();
  });
  write_responses(json, "application/json", "object", false, http::kEveryPath);
  json.end_object().end_object();
}

void write_error_schema(JsonWriter& json) {
  json.begin_object().key("type").text("object").key("required").begin_array().text("error").end_array();
  json.key("properties").begin_object().key("error").begin_object().key("type").text("object");
  json.key("required").begin_array().text("message").text("type").text("param").text("code").end_array();
  json.key("properties").begin_object();
  json.key("message").begin_object().key("type").text("string").end_object();
  json.key("type").begin_object().key("type").text("string").end_object();
  json.key("param").begin_object().key("type").begin_array().text("string").text("null").end_array();
  json.key("description").text("the field that is wrong").end_object();
  json.key("code").begin_object().key("type").begin_array().text("integer").text("string").end_array();
  json.key("description").text("the HTTP status, or a word that is more specific").end_object();
  json.end_object().end_object().end_object().end_object();
}

// Without API keys there is one, empty requirement: no authentication is needed.
void write_security(JsonWriter& json, bool keys) {
  json.key("security").begin_array().begin_object();
  if (keys)
    json.key("bearer").begin_array().end_array().end_object().begin_object().key("key").begin_array().end_array();
  json.end_object().end_array();
}

}  // namespace

http::Response openapi(const Services& services) {
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("openapi").text("3.1.0");
  json.key("info").begin_object().key("title").text("quire").key("version").text(services.version).end_object();
  json.key("paths").begin_object();
  for (const Described& one : kDescribed) write_described(json, one, services.limits);
  for (const Plain& one : kPlain) write_plain(json, one);
  for (const std::string_view path : kCacheFilePaths) write_cache_file_order(json, path);
  write_cache_clear_order(json);
  json.end_object();
  json.key("components").begin_object().key("schemas").begin_object().key("Error");
  write_error_schema(json);
  json.end_object();
  json.key("securitySchemes").begin_object().key("bearer").begin_object();
  json.key("type").text("http").key("scheme").text("bearer").end_object().key("key").begin_object();
  json.key("type").text("apiKey").key("in").text("header").key("name").text(http::kApiKeyHeader);
  json.end_object().end_object().end_object();
  write_security(json, services.keys != nullptr);
  json.end_object();
  return response;
}

}  // namespace quire::api
