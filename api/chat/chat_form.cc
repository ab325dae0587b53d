#include "api/chat/chat_form.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "api/chat/answer_grammar.h"
#include "api/chat/message_writer.h"
#include "api/chat/prompt.h"
#include "api/http/sse_writer.h"
#include "api/openai/generation/envelope.h"

namespace quire::api::chat {
namespace {

using openai::AnswerFacts;
using openai::JsonWriter;
using openai::Piece;

constexpr openai::Envelope kWhole{"chatcmpl-", "chat.completion"};
constexpr openai::Envelope kChunk{"chatcmpl-", "chat.completion.chunk"};

std::tm local_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

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

Result<TokenPrompt> prompt_of(const ChatRequest& request, const Services& services) {
  Result<ChatPrompt> rendered = render_prompt(services.chat.get(), request, local_now());
  if (!rendered) return rendered.error();
  TokenPrompt prompt{std::move(rendered->text), {}, rendered->in_reasoning};
  prompt.ids = services.tokenizer->encode(prompt.text, request.add_special_tokens);
  if (prompt.ids.empty() && services.bos) prompt.ids.push_back(*services.bos);
  if (prompt.ids.empty()) {
    return invalid("messages", "messages make an empty prompt, and this model has no token that begins a text");
  }
  return prompt;
}

Result<Done> ChatForm::read(const std::string& body) {
  Result<ChatRequest> parsed = parse_chat_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  for (const ToolFunction& function : request_.functions) tool_names_.push_back(function.name);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> ChatForm::prompts() {
  Result<TokenPrompt> prompt = prompt_of(request_, services_);
  if (!prompt) return prompt.error();
  Result<std::shared_ptr<const grammar::Grammar>> grammar = answer_grammar(request_, prompt->in_reasoning, services_);
  if (!grammar) return grammar.error();
  request_.grammar = std::move(*grammar);
  show_marks();
  in_reasoning_ = prompt->in_reasoning;
  ids_ = CallIds(services_.chat->calls, prompt->ids);
  request_.messages = {};
  request_.tools = {};
  for (std::uint32_t i = 0; request_.stream && i < request_.n; ++i) {
    streamed_.push_back({AnswerParser(answer_form())});
  }
  std::vector<std::vector<TokenId>> all;
  all.push_back(std::move(prompt->ids));
  return all;
}

// Marks that the tokenizer has as special tokens are parts of the text for us; what other special tokens are said (few are, but
// those that end an answer) is then shown, too.
void ChatForm::show_marks() {
  const AnswerForm form = answer_form();
  const auto show = [&](std::string_view mark) {
    const std::optional<TokenId> id = services_.tokenizer->id_of(mark);
    if (id && services_.tokenizer->is_special(*id)) request_.skip_special_tokens = false;
  };
  for (const std::string_view mark : marks_of(form.calls)) show(mark);
  if (const std::optional<Marks> marks = marks_of(form.reasoning)) {
    show(marks->begin);
    show(marks->end);
  }
}

AnswerForm ChatForm::answer_form() const {
  AnswerForm form;
  form.reasoning = services_.chat->reasoning;
  form.in_reasoning = in_reasoning_;
  form.include_reasoning = request_.include_reasoning;
  if (!tool_names_.empty() && request_.tool_choice.kind != ToolChoice::Kind::kNone) form.calls = services_.chat->calls;
  form.tools = tool_names_;
  if (!request_.parallel_tool_calls) form.max_calls = 1;
  return form;
}

// ---- what is written

std::string ChatForm::id_of(const AnswerFacts& facts, const Piece& piece, std::size_t call) const {
  return ids_.of(facts.seed, piece.index, call);
}

void ChatForm::append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) {
  if (piece.first) append_event(events, facts, piece, append_role, false, false);
  Streamed& one = streamed_[piece.index];
  Deltas deltas;
  one.parser.push(piece.text, deltas);
  if (piece.finish_reason != nullptr) one.parser.finish(deltas);
  one.calls = one.calls || has_call(deltas);

  bool tells_tokens = !piece.tokens.tokens.empty();
  const IdOf id = [&](std::size_t call) { return id_of(facts, piece, call); };
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
  openai::append_head(json, kChunk, facts);
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

std::string ChatForm::whole(const AnswerFacts& facts, std::span<const Piece> pieces, const openai::Usage& usage) {
  std::string json;
  openai::append_head(json, kWhole, facts);
  json += ",\"choices\":[";
  for (const Piece& piece : pieces) {
    if (piece.index != 0) json += ',';
    append_choice(json, facts, piece);
  }
  json += ']';
  openai::append_usage(json, usage);
  json += '}';
  return json;
}

void ChatForm::append_choice(std::string& json, const AnswerFacts& facts, const Piece& piece) const {
  AnswerParser parser(answer_form());
  Deltas deltas;
  parser.push(piece.text, deltas);
  parser.finish(deltas);
  AnswerParts parts;
  parts.take(deltas);

  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{piece.index}).key("message");
  append_message(writer, parts, [&](std::size_t call) { return id_of(facts, piece, call); });
  writer.key("logprobs");
  append_logprobs(writer, piece);
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
