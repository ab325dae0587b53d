#include "api/messages/message_object.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "api/chat/json_copy.h"
#include "api/wire/sse_writer.h"

namespace quire::api::messages {
namespace {

using chat::AnswerItem;
using Kind = AnswerItem::Kind;

bool is_object(std::string_view text) {
  const Result<json::Value> value = json::parse(text, 2 * chat::kMaxDepth);  // deeper than any tool's schema
  return value && value->is_object();
}

// Writes a block, with its text if `whole`, else as it begins. The arguments of a truncated call are not valid JSON:
// its input is then {}.
void append_block(JsonWriter& json, const chat::AssistantMessage& assistant, const AnswerFacts& facts,
                  const AnswerItem& item, bool whole) {
  const std::string_view text = whole ? std::string_view(item.text) : std::string_view();
  json.begin_object().key("type");
  switch (item.kind) {
    case Kind::kReasoning:
      json.text("thinking").key("thinking").text(text).key("signature").text("");
      break;
    case Kind::kContent:
      json.text("text").key("text").text(text);
      break;
    case Kind::kCall:
      json.text("tool_use")
          .key("id")
          .text(assistant.call_id(facts, 0, item.call, item.name))
          .key("name")
          .text(item.name);
      json.key("input").written(is_object(text) ? text : "{}");
      break;
  }
  json.end_object();
}

void append_usage(JsonWriter& json, const Usage& usage) {
  const std::uint64_t cached = usage.cached_tokens.value_or(0);
  json.key("usage").begin_object().key("input_tokens").number(usage.prompt_tokens - cached);
  json.key("cache_creation_input_tokens").number(std::uint64_t{0});
  json.key("cache_read_input_tokens").number(cached);
  json.key("output_tokens").number(usage.completion_tokens).end_object();
}

void append_ending(JsonWriter& json, const Ending& ending) {
  json.key("stop_reason");
  if (ending.reason != nullptr) {
    json.text(ending.reason);
  } else {
    json.null();
  }
  json.key("stop_sequence");
  if (ending.sequence) {
    json.text(*ending.sequence);
  } else {
    json.null();
  }
}

}  // namespace

Ending ending_of(const ChoiceDelta& delta, std::span<const AnswerItem> items) {
  if (delta.finish_reason == nullptr) return {};
  const std::string_view reason = delta.finish_reason;
  if (reason == "length") return {"max_tokens", {}};
  if (reason != "stop") return {};
  if (const auto* text = std::get_if<std::string>(&delta.stop_reason)) return {"stop_sequence", *text};
  const bool calls =
      std::any_of(items.begin(), items.end(), [](const AnswerItem& item) { return item.kind == Kind::kCall; });
  return {calls ? "tool_use" : "end_turn", {}};
}

void append_message(JsonWriter& json, const chat::AssistantMessage& assistant, const AnswerFacts& facts,
                    std::span<const AnswerItem> items, const Ending& ending, const Usage& usage) {
  json.begin_object().key("id").text("msg_" + facts.id).key("type").text("message").key("role").text("assistant");
  json.key("model").text(facts.model).key("system_fingerprint").text(facts.fingerprint).key("seed").number(facts.seed);
  json.key("content").begin_array();
  for (const AnswerItem& item : items) append_block(json, assistant, facts, item, true);
  json.end_array();
  append_ending(json, ending);
  append_usage(json, usage);
  if (!items.empty()) json.written(facts.timings);  // only a complete answer has blocks here; message_start has none
  json.end_object();
}

// ---- events

template <typename Write>
void BlockEvents::event(std::string_view type, Write write) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("type").text(type);
  write(json);
  json.end_object();
  http::append_event(events_, type, text);
}

void BlockEvents::start(const Usage& usage) {
  event("message_start",
        [&](JsonWriter& json) { append_message(json.key("message"), assistant_, facts_, {}, {}, usage); });
}

void BlockEvents::begin(const AnswerItem& item) {
  event("content_block_start", [&](JsonWriter& json) {
    json.key("index").number(std::uint64_t{item.index});
    append_block(json.key("content_block"), assistant_, facts_, item, false);
  });
}

void BlockEvents::more(const AnswerItem& item, std::string_view text) {
  event("content_block_delta", [&](JsonWriter& json) {
    json.key("index").number(std::uint64_t{item.index}).key("delta").begin_object().key("type");
    switch (item.kind) {
      case Kind::kReasoning:
        json.text("thinking_delta").key("thinking").text(text);
        break;
      case Kind::kContent:
        json.text("text_delta").key("text").text(text);
        break;
      case Kind::kCall:
        json.text("input_json_delta").key("partial_json").text(text);
        break;
    }
    json.end_object();
  });
}

void BlockEvents::end(const AnswerItem& item) {
  event("content_block_stop", [&](JsonWriter& json) { json.key("index").number(std::uint64_t{item.index}); });
}

void BlockEvents::stop(const Ending& ending, const Usage& usage) {
  event("message_delta", [&](JsonWriter& json) {
    append_ending(json.key("delta").begin_object(), ending);
    json.end_object();
    append_usage(json, usage);
    json.written(facts_.timings);
  });
  event("message_stop", [](JsonWriter&) {});
}

}  // namespace quire::api::messages
