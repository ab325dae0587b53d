#include "api/chat/chat_formatter.h"

#include <utility>

#include "api/chat/message_writer.h"
#include "api/generation/envelope.h"
#include "api/wire/sse_writer.h"

namespace quire::api::chat {
namespace {

constexpr Envelope kWhole{"chatcmpl-", "chat.completion"};
constexpr Envelope kChunk{"chatcmpl-", "chat.completion.chunk"};

// Makes finish_reason "tool_calls" of "stop" if the answer has calls; any other reason, such as "length", stays.
ChoiceDelta with_token_of(const ChoiceDelta& delta, bool calls) {
  ChoiceDelta changed = delta;
  const bool stopped = delta.finish_reason != nullptr && std::string_view(delta.finish_reason) == "stop";
  if (calls && stopped) changed.finish_reason = "tool_calls";
  return changed;
}

// The first delta of a streamed choice: its role.
void append_role(JsonWriter& writer) {
  writer.begin_object().key("role").text("assistant").key("content").text("").key("refusal").null().end_object();
}

bool has_call(const Deltas& deltas) {
  for (const Delta& part : deltas.all()) {
    if (part.kind == Delta::Kind::kCall) return true;
  }
  return false;
}

}  // namespace

// ---- before admission

Result<Done> ChatFormatter::read(const std::string& body) {
  Result<ChatRequest> parsed = parse_chat_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> ChatFormatter::prompts(Allowance& allowance) {
  Result<std::vector<std::vector<TokenId>>> prompts = assistant_.begin(request_, allowance);
  if (!prompts) return prompts.error();
  streamed_.clear();
  for (std::uint32_t i = 0; request_.stream && i < request_.n; ++i) streamed_.push_back({assistant_.parser()});
  return prompts;
}

// ---- writing the answer

void ChatFormatter::append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) {
  if (delta.first) append_event(events, facts, delta, append_role, false, false);
  Streamed& one = streamed_[delta.index];
  Deltas deltas;
  one.parser.push(delta.text, deltas);
  if (delta.finish_reason != nullptr) one.parser.finish(deltas);
  one.calls = one.calls || has_call(deltas);

  bool has_tokens = !delta.tokens.tokens.empty();
  const IdOf id = [&](std::size_t call, std::string_view name) {
    return assistant_.call_id(facts, delta.index, call, name);
  };
  for (const Delta& part : deltas.all()) {
    const auto write = [&](JsonWriter& writer) { append_delta_object(writer, part, id); };
    append_event(events, facts, delta, write, std::exchange(has_tokens, false), false);
  }
  const bool ends = delta.finish_reason != nullptr;
  if (!has_tokens && !ends) return;
  const auto nothing = [](JsonWriter& writer) { writer.begin_object().end_object(); };
  append_event(events, facts, with_token_of(delta, one.calls), nothing, has_tokens, ends);
}

void ChatFormatter::append_event(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta,
                                 const WriteDelta& write_delta, bool has_tokens, bool ends) const {
  std::string json;
  if (ends || facts.timings.empty()) {
    append_head(json, kChunk, facts);
  } else {  // timings are in the last of a delta's events only
    AnswerFacts before_end = facts;
    before_end.timings.clear();
    append_head(json, kChunk, before_end);
  }
  json += ",\"choices\":[";
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{delta.index}).key("delta");
  write_delta(writer);
  writer.key("logprobs");
  if (has_tokens) {
    append_logprobs(writer, delta);
  } else {
    writer.null();
  }
  if (ends) {
    append_finish(writer, delta);
  } else {
    writer.key("finish_reason").null();
  }
  if (has_tokens && request_.return_token_ids) append_token_ids(writer, delta);
  writer.end_object();
  json += ']';
  if (request_.include_usage && request_.continuous_usage) {
    append_usage(json, {delta.prompt.num_tokens, delta.num_tokens, {}});
  } else if (request_.include_usage) {
    json += ",\"usage\":null";
  }
  json += '}';
  http::append_event(events, json);
}

void ChatFormatter::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
  if (request_.include_usage) {
    std::string json;
    append_head(json, kChunk, facts);
    json += ",\"choices\":[]";
    append_usage(json, usage);
    json += '}';
    http::append_event(events, json);
  }
  events += http::kSseDone;
}

Writing ChatFormatter::write_whole(std::string& out, const AnswerFacts& facts,
                                   std::span<const ChoiceDelta> choice_deltas, Usage usage) {
  append_head(out, kWhole, facts);
  out += ",\"choices\":[";
  for (const ChoiceDelta& delta : choice_deltas) {
    if (delta.index != 0) out += ',';
    Writing choice = write_choice(out, facts, delta);
    co_await choice;
  }
  out += ']';
  append_usage(out, usage);
  out += '}';
}

Writing ChatFormatter::write_choice(std::string& json, const AnswerFacts& facts, const ChoiceDelta& delta) const {
  const AnswerParts parts = assistant_.parts_of(delta.text);
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{delta.index}).key("message");
  append_message(writer, parts, [this, &facts, &delta](std::size_t call, std::string_view name) {
    return assistant_.call_id(facts, delta.index, call, name);
  });
  writer.key("logprobs");
  if (request_.logprobs) {
    Writing logprobs = write_chat_logprobs(writer, json, *services_.tokenizer, delta.tokens, *request_.logprobs,
                                           request_.return_tokens_as_token_ids);
    co_await logprobs;
  } else {
    writer.null();
  }
  append_finish(writer, with_token_of(delta, !parts.calls.empty()));
  if (request_.return_token_ids) append_token_ids(writer, delta);
  writer.end_object();
}

void ChatFormatter::append_logprobs(JsonWriter& writer, const ChoiceDelta& delta) const {
  if (!request_.logprobs) {
    writer.null();
    return;
  }
  append_chat_logprobs(writer, *services_.tokenizer, delta.tokens, *request_.logprobs,
                       request_.return_tokens_as_token_ids);
}

std::unique_ptr<Generation> chat(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<ChatFormatter>(services));
}

}  // namespace quire::api::chat
