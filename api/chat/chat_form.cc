#include "api/chat/chat_form.h"

#include <utility>

#include "api/chat/message_writer.h"
#include "api/http/sse_writer.h"
#include "api/openai/generation/envelope.h"

namespace quire::api::chat {
namespace {

using openai::AnswerFacts;
using openai::JsonWriter;
using openai::Piece;

constexpr openai::Envelope kWhole{"chatcmpl-", "chat.completion"};
constexpr openai::Envelope kChunk{"chatcmpl-", "chat.completion.chunk"};

// An answer that calls ends for its calls, unless something cut it short.
Piece as_told(const Piece& piece, bool calls) {
  Piece changed = piece;
  const bool stopped = piece.finish_reason != nullptr && std::string_view(piece.finish_reason) == "stop";
  if (calls && stopped) changed.finish_reason = "tool_calls";
  return changed;
}

// The role, which opens a stream's choice.
void append_role(JsonWriter& writer) {
  writer.begin_object().key("role").text("assistant").key("content").text("").key("refusal").null().end_object();
}

bool has_call(const Deltas& deltas) {
  for (const Delta& delta : deltas.all()) {
    if (delta.kind == Delta::Kind::kCall) return true;
  }
  return false;
}

}  // namespace

// ---- before admission

Result<Done> ChatForm::read(const std::string& body) {
  Result<ChatRequest> parsed = parse_chat_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> ChatForm::prompts(Allowance& allowance) {
  Result<std::vector<std::vector<TokenId>>> prompts = turn_.begin(request_, allowance);
  if (!prompts) return prompts.error();
  streamed_.clear();
  for (std::uint32_t i = 0; request_.stream && i < request_.n; ++i) streamed_.push_back({turn_.parser()});
  return prompts;
}

// ---- what is written

void ChatForm::append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) {
  if (piece.first) append_event(events, facts, piece, append_role, false, false);
  Streamed& one = streamed_[piece.index];
  Deltas deltas;
  one.parser.push(piece.text, deltas);
  if (piece.finish_reason != nullptr) one.parser.finish(deltas);
  one.calls = one.calls || has_call(deltas);

  bool tells_tokens = !piece.tokens.tokens.empty();
  const IdOf id = [&](std::size_t call) { return turn_.call_id(facts, piece.index, call); };
  for (const Delta& delta : deltas.all()) {
    const auto write = [&](JsonWriter& writer) { append_delta(writer, delta, id); };
    append_event(events, facts, piece, write, std::exchange(tells_tokens, false), false);
  }
  const bool ends = piece.finish_reason != nullptr;
  if (!tells_tokens && !ends) return;
  const auto nothing = [](JsonWriter& writer) { writer.begin_object().end_object(); };
  append_event(events, facts, as_told(piece, one.calls), nothing, tells_tokens, ends);
}

void ChatForm::append_event(std::string& events, const AnswerFacts& facts, const Piece& piece,
                            const WriteDelta& write_delta, bool tells_tokens, bool ends) const {
  std::string json;
  if (ends || facts.timings.empty()) {
    openai::append_head(json, kChunk, facts);
  } else {  // they stand in the last of a piece's events
    AnswerFacts before_end = facts;
    before_end.timings.clear();
    openai::append_head(json, kChunk, before_end);
  }
  json += ",\"choices\":[";
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{piece.index}).key("delta");
  write_delta(writer);
  writer.key("logprobs");
  if (tells_tokens) {
    append_logprobs(writer, piece);
  } else {
    writer.null();
  }
  if (ends) {
    openai::append_finish(writer, piece);
  } else {
    writer.key("finish_reason").null();
  }
  if (tells_tokens && request_.return_token_ids) openai::append_token_ids(writer, piece);
  writer.end_object();
  json += ']';
  if (request_.include_usage && request_.continuous_usage) {
    openai::append_usage(json, {piece.prompt.num_tokens, piece.num_tokens, {}});
  } else if (request_.include_usage) {
    json += ",\"usage\":null";
  }
  json += '}';
  http::append_event(events, json);
}

void ChatForm::append_end(std::string& events, const AnswerFacts& facts, const openai::Usage& usage) {
  if (request_.include_usage) {
    std::string json;
    openai::append_head(json, kChunk, facts);
    json += ",\"choices\":[]";
    openai::append_usage(json, usage);
    json += '}';
    http::append_event(events, json);
  }
  events += http::kSseDone;
}

openai::Writing ChatForm::write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces,
                                      openai::Usage usage) {
  openai::append_head(out, kWhole, facts);
  out += ",\"choices\":[";
  for (const Piece& piece : pieces) {
    if (piece.index != 0) out += ',';
    openai::Writing choice = write_choice(out, facts, piece);
    co_await choice;
  }
  out += ']';
  openai::append_usage(out, usage);
  out += '}';
}

openai::Writing ChatForm::write_choice(std::string& json, const AnswerFacts& facts, const Piece& piece) const {
  const AnswerParts parts = turn_.parts_of(piece.text);
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{piece.index}).key("message");
  append_message(writer, parts,
                 [this, &facts, &piece](std::size_t call) { return turn_.call_id(facts, piece.index, call); });
  writer.key("logprobs");
  if (request_.logprobs) {
    openai::Writing logprobs = write_chat_logprobs(writer, json, *services_.tokenizer, piece.tokens, *request_.logprobs,
                                                   request_.return_tokens_as_token_ids);
    co_await logprobs;
  } else {
    writer.null();
  }
  openai::append_finish(writer, as_told(piece, !parts.calls.empty()));
  if (request_.return_token_ids) openai::append_token_ids(writer, piece);
  writer.end_object();
}

void ChatForm::append_logprobs(JsonWriter& writer, const Piece& piece) const {
  if (!request_.logprobs) {
    writer.null();
    return;
  }
  append_chat_logprobs(writer, *services_.tokenizer, piece.tokens, *request_.logprobs,
                       request_.return_tokens_as_token_ids);
}

std::unique_ptr<openai::Generation> chat(const Services& services, http::Request request) {
  return std::make_unique<openai::Generation>(services, std::move(request), std::make_unique<ChatForm>(services));
}

}  // namespace quire::api::chat
