#include "api/generation/envelope.h"

#include <variant>

namespace quire::api {

void append_head(std::string& json, const Envelope& envelope, const AnswerFacts& facts) {
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("id").text(envelope.id_prefix + facts.id).key("object").text(envelope.object);
  writer.key("created").number(facts.created).key("model").text(facts.model);
  writer.key("system_fingerprint").text(facts.fingerprint).key("seed").number(facts.seed);
  if (!facts.timings.empty()) json.append(1, ',').append(facts.timings);
}

void append_usage(std::string& json, const Usage& usage) {
  json += ",\"usage\":";
  JsonWriter writer(json);
  writer.begin_object();
  writer.key("prompt_tokens").number(usage.prompt_tokens).key("completion_tokens").number(usage.completion_tokens);
  writer.key("total_tokens").number(usage.prompt_tokens + usage.completion_tokens);
  if (usage.cached_tokens) {
    writer.key("prompt_tokens_details").begin_object().key("cached_tokens").number(*usage.cached_tokens).end_object();
  }
  writer.end_object();
}

void append_finish(JsonWriter& writer, const ChoiceDelta& delta) {
  writer.key("finish_reason");
  if (delta.finish_reason == nullptr) {
    writer.null();
    return;
  }
  writer.text(delta.finish_reason).key("stop_reason");
  if (const auto* text = std::get_if<std::string>(&delta.stop_reason)) {
    writer.text(*text);
  } else if (const auto* id = std::get_if<TokenId>(&delta.stop_reason)) {
    writer.number(std::int64_t{*id});
  } else {
    writer.null();
  }
}

void append_token_ids(JsonWriter& writer, const ChoiceDelta& delta) {
  if (delta.first) {
    writer.key("prompt_token_ids").begin_array();
    for (const TokenId id : delta.prompt.ids) writer.number(std::int64_t{id});
    writer.end_array();
  }
  writer.key("token_ids").begin_array();
  for (const AnswerToken& token : delta.tokens.tokens) writer.number(std::int64_t{token.id});
  writer.end_array();
}

}  // namespace quire::api
