#include "api/chat/message_writer.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "api/generation/prompt_logprobs.h"
#include "api/generation/token_text.h"

namespace quire::api::chat {
namespace {

void append_reasoning(JsonWriter& writer, std::string_view text) {
  writer.key("reasoning").text(text).key("reasoning_content").text(text);
}

void append_token(JsonWriter& writer, const text::Tokenizer& tokenizer, TokenId id, float logprob, bool names_are_ids) {
  writer.key("token").text(token_name(tokenizer, id, names_are_ids));
  writer.key("logprob").number(finite_logprob(logprob)).key("bytes").begin_array();
  for (const char byte : token_bytes(tokenizer, id)) {
    writer.number(std::int64_t{static_cast<unsigned char>(byte)});
  }
  writer.end_array();
}

// Writes the i-th token with the likeliest tokens in its place.
void append_said(JsonWriter& writer, const text::Tokenizer& tokenizer, const AnswerTokens& tokens, std::size_t i,
                 std::size_t num_top, bool names_are_ids) {
  const AnswerToken& said = tokens.tokens[i];
  writer.begin_object();
  append_token(writer, tokenizer, said.id, said.logprob, names_are_ids);
  writer.key("top_logprobs").begin_array();
  const std::span<const flow::Candidate> top = tokens.top_of(i);
  for (const flow::Candidate& one : top.first(std::min(top.size(), num_top))) {
    if (one.token < 0) break;  // beyond the vocabulary
    writer.begin_object();
    append_token(writer, tokenizer, one.token, one.logprob, names_are_ids);
    writer.end_object();
  }
  writer.end_array().end_object();
}

}  // namespace

void append_message(JsonWriter& writer, const AnswerParts& parts, const IdOf& id_of) {
  writer.begin_object().key("role").text("assistant").key("content");
  const bool says_nothing = parts.content.empty() && !(parts.calls.empty() && parts.reasoning.empty());
  if (says_nothing) {
    writer.null();
  } else {
    writer.text(parts.content);
  }
  writer.key("refusal").null();
  if (!parts.reasoning.empty()) append_reasoning(writer, parts.reasoning);
  if (!parts.calls.empty()) {
    writer.key("tool_calls").begin_array();
    for (std::size_t i = 0; i < parts.calls.size(); ++i) {
      writer.begin_object()
          .key("id")
          .text(id_of(i, parts.calls[i].name))
          .key("type")
          .text("function")
          .key("function")
          .begin_object();
      writer.key("name").text(parts.calls[i].name).key("arguments").text(parts.calls[i].arguments);
      writer.end_object().end_object();
    }
    writer.end_array();
  }
  writer.end_object();
}

void append_delta_object(JsonWriter& writer, const Delta& delta, const IdOf& id_of) {
  writer.begin_object();
  const auto begin_call = [&] {
    writer.key("tool_calls").begin_array().begin_object().key("index").number(std::uint64_t{delta.call});
  };
  switch (delta.kind) {
    case Delta::Kind::kReasoning:
      append_reasoning(writer, delta.text);
      break;
    case Delta::Kind::kContent:
      writer.key("content").text(delta.text);
      break;
    case Delta::Kind::kCall:
      begin_call();
      writer.key("id").text(id_of(delta.call, delta.text)).key("type").text("function").key("function").begin_object();
      writer.key("name").text(delta.text).key("arguments").text("").end_object().end_object().end_array();
      break;
    case Delta::Kind::kArguments:
      begin_call();
      writer.key("function").begin_object().key("arguments").text(delta.text).end_object().end_object().end_array();
      break;
  }
  writer.end_object();
}

void append_token_logprobs(JsonWriter& writer, const text::Tokenizer& tokenizer, const AnswerTokens& tokens,
                           std::size_t num_top, bool names_are_ids) {
  writer.begin_array();
  for (std::size_t i = 0; i < tokens.tokens.size(); ++i) {
    append_said(writer, tokenizer, tokens, i, num_top, names_are_ids);
  }
  writer.end_array();
}

void append_chat_logprobs(JsonWriter& writer, const text::Tokenizer& tokenizer, const AnswerTokens& tokens,
                          std::size_t num_top, bool names_are_ids) {
  writer.begin_object().key("content");
  append_token_logprobs(writer, tokenizer, tokens, num_top, names_are_ids);
  writer.key("refusal").null().end_object();
}

Writing write_chat_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                            AnswerTokens tokens, std::size_t num_top, bool names_are_ids) {
  writer.begin_object().key("content").begin_array();
  for (std::size_t i = 0; i < tokens.tokens.size(); ++i) {
    append_said(writer, tokenizer, tokens, i, num_top, names_are_ids);
    co_await part_end(out);
  }
  writer.end_array().key("refusal").null().end_object();
}

}  // namespace quire::api::chat
