#include "api/responses/response_object.h"

#include "api/chat/message_writer.h"

namespace quire::api::responses {
namespace {

using chat::AnswerItem;
using Kind = AnswerItem::Kind;

const char* prefix_of(Kind kind) {
  switch (kind) {
    case Kind::kReasoning:
      return "rs_";
    case Kind::kContent:
      return "msg_";
    case Kind::kCall:
      break;
  }
  return "fc_";
}

// OpenAI's error code of a failed response.
const char* word_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid_prompt";
    case Code::kQueueFull:
      return "rate_limit_exceeded";
    default:
      return "server_error";
  }
}

void append_text_or_null(JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name);
  if (text.empty()) {
    json.null();
  } else {
    json.text(text);
  }
}

void append_usage(JsonWriter& json, const ResponseUsage& usage) {
  const Usage& tokens = usage.tokens;
  json.begin_object().key("input_tokens").number(tokens.prompt_tokens);
  json.key("input_tokens_details").begin_object();
  json.key("cached_tokens").number(tokens.cached_tokens.value_or(0));
  json.key("cache_write_tokens").number(std::uint64_t{0}).end_object();
  json.key("output_tokens").number(tokens.completion_tokens);
  json.key("output_tokens_details").begin_object();
  json.key("reasoning_tokens").number(usage.reasoning_tokens).end_object();
  json.key("total_tokens").number(tokens.prompt_tokens + tokens.completion_tokens).end_object();
}

}  // namespace

std::string_view status_of(const char* finish_reason) {
  const std::string_view reason = finish_reason;
  return reason == "length" ? "incomplete" : reason == "abort" ? "cancelled" : "completed";
}

std::string ResponseObject::item_id(const AnswerFacts& facts, const AnswerItem& item) {
  return prefix_of(item.kind) + facts.id + "_" + std::to_string(item.index);
}

void ResponseObject::append(JsonWriter& json, const AnswerFacts& facts, const Progress& progress) const {
  json.begin_object().key("id").text("resp_" + facts.id).key("object").text("response");
  json.key("created_at").number(facts.created).key("status").text(progress.status).key("model").text(facts.model);
  json.key("system_fingerprint").text(facts.fingerprint).key("seed").number(facts.seed);
  json.key("error");
  if (progress.error != nullptr) {
    json.begin_object().key("code").text(word_of(progress.error->code)).key("message").text(progress.error->message);
    append_text_or_null(json, "param", progress.error->param);
    json.end_object();
  } else {
    json.null();
  }
  json.key("incomplete_details");
  if (progress.status == "incomplete") {
    json.begin_object().key("reason").text("max_output_tokens").end_object();
  } else {
    json.null();
  }
  json.key("output").begin_array();
  for (const AnswerItem& item : progress.items) {
    const bool last = &item == &progress.items.back();
    append_item(json, facts, item, !last || progress.status == "completed" ? "completed" : "incomplete");
  }
  json.end_array();
  append_asked(json);
  json.key("usage");
  if (progress.usage != nullptr) {
    append_usage(json, *progress.usage);
    json.written(facts.timings);  // set when usage is
  } else {
    json.null();
  }
  json.end_object();
}

// Settings of the request, with the defaults of those that it did not give.
void ResponseObject::append_asked(JsonWriter& json) const {
  json.key("instructions");
  if (request_.instructions) {
    json.text(*request_.instructions);
  } else {
    json.null();
  }
  json.key("max_output_tokens");
  if (request_.max_tokens) {
    json.number(std::uint64_t{*request_.max_tokens});
  } else {
    json.null();
  }
  json.key("temperature").number(request_.sampling.temperature).key("top_p").number(request_.sampling.top_p);
  json.key("tools").written(request_.tools_json).key("tool_choice").written(request_.tool_choice_json);
  json.key("parallel_tool_calls").boolean(request_.parallel_tool_calls);
  json.key("text").begin_object().key("format").written(request_.format_json).end_object();
  json.key("reasoning").begin_object();
  append_text_or_null(json, "effort", request_.reasoning_effort);
  append_text_or_null(json, "summary", request_.reasoning_summary);
  json.end_object().key("truncation").text(request_.truncate_prompt_tokens ? "auto" : "disabled");
  json.key("metadata").written(request_.metadata_json);
  append_text_or_null(json, "user", request_.user);
  append_text_or_null(json, "safety_identifier", request_.safety_identifier);
  append_text_or_null(json, "prompt_cache_key", request_.prompt_cache_key);
  json.key("store").boolean(false).key("background").boolean(false).key("service_tier").text("default");
  json.key("previous_response_id").null().key("top_logprobs").number(std::uint64_t{request_.top_logprobs.value_or(0)});
}

void ResponseObject::append_item(JsonWriter& json, const AnswerFacts& facts, const AnswerItem& item,
                                 std::string_view status) const {
  json.begin_object().key("id").text(item_id(facts, item)).key("type");
  const auto append_content = [&] {
    json.key("content").begin_array();
    if (status != "in_progress") append_part(json, item, item.text);
    json.end_array();
  };
  switch (item.kind) {
    case Kind::kReasoning:
      json.text("reasoning").key("summary").begin_array().end_array();
      append_content();
      break;
    case Kind::kContent:
      json.text("message").key("role").text("assistant");
      append_content();
      break;
    case Kind::kCall:
      json.text("function_call").key("call_id").text(assistant_.call_id(facts, 0, item.call, item.name));
      json.key("name").text(item.name).key("arguments").text(item.text);
      break;
  }
  json.key("status").text(status).end_object();
}

// Part of an item. With its whole text it has the log probabilities of all its tokens; with an empty text, none.
void ResponseObject::append_part(JsonWriter& json, const AnswerItem& item, std::string_view text) const {
  const bool content = item.kind == Kind::kContent;
  json.begin_object().key("type").text(content ? "output_text" : "reasoning_text").key("text").text(text);
  if (content) json.key("annotations").begin_array().end_array();
  if (content && request_.logprobs) {
    append_logprobs(json.key("logprobs"), text.empty() ? AnswerTokens{} : tokens_.of(item.index));
  }
  json.end_object();
}

void ResponseObject::append_logprobs(JsonWriter& json, const AnswerTokens& tokens) const {
  chat::append_token_logprobs(json, *services_.tokenizer, tokens, request_.logprobs.value_or(0),
                              /*names_are_ids=*/false);
}

}  // namespace quire::api::responses
