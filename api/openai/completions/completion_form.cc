#include "api/openai/completions/completion_form.h"

#include <utility>

#include "api/http/sse_writer.h"
#include "api/openai/completions/fill_in.h"
#include "api/openai/completions/text_logprobs.h"
#include "api/openai/generation/encode.h"
#include "api/openai/generation/envelope.h"
#include "api/openai/generation/prompt_logprobs.h"
#include "api/openai/generation/token_text.h"
#include "api/openai/response_writer.h"

namespace quire::api::openai {
namespace {

constexpr Envelope kCompletionEnvelope{"cmpl-", "text_completion"};

}  // namespace

// ---- before admission

Result<Done> CompletionForm::read(const std::string& body) {
  Result<CompletionRequest> parsed = parse_completion_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> CompletionForm::prompts(Allowance& allowance) {
  std::vector<std::vector<TokenId>> all;
  echoes_.clear();
  for (Prompt& prompt : request_.prompts) {
    Result<std::vector<TokenId>> ids =
        request_.suffix ? fill_in(prompt, request_, services_, allowance) : ids_of(prompt, allowance);
    if (!ids) return ids.error();
    all.push_back(std::move(*ids));
    std::string* text = std::get_if<std::string>(&prompt);
    const bool cut = request_.truncate_prompt_tokens.has_value();
    echoes_.emplace_back();
    if (request_.echo && text != nullptr && !cut) echoes_.back() = std::move(*text);
  }
  request_.prompts.clear();
  return all;
}

Result<std::vector<TokenId>> CompletionForm::ids_of(const Prompt& prompt, Allowance& allowance) const {
  if (const auto* given = std::get_if<std::vector<TokenId>>(&prompt)) return *given;
  Result<std::vector<TokenId>> ids = encode_prompt(std::get<std::string>(prompt), request_, services_, allowance);
  if (!ids || !ids->empty()) return ids;
  if (!services_.bos) return invalid("prompt", "prompt is empty, and this model has no token that begins a text");
  return std::vector<TokenId>{*services_.bos};
}

// ---- what is written

void CompletionForm::append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) {
  write_piece(events, facts, piece).finish();
}

Writing CompletionForm::write_piece(std::string& events, const AnswerFacts& facts, Piece piece) {
  events += http::kSseEvent;
  append_head(events, kCompletionEnvelope, facts);
  events += ",\"choices\":[";
  Writing choice = write_choice(events, piece);
  co_await choice;
  events += ']';
  append_usage_so_far(events, piece);
  events += '}';
  events += http::kSseEventEnd;
}

void CompletionForm::append_usage_so_far(std::string& json, const Piece& piece) const {
  if (request_.include_usage && request_.continuous_usage) {
    append_usage(json, {piece.prompt.num_tokens, piece.num_tokens, {}});
  } else if (request_.include_usage) {
    json += ",\"usage\":null";
  }
}

void CompletionForm::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
  if (request_.include_usage) {
    std::string json;
    append_head(json, kCompletionEnvelope, facts);
    json += ",\"choices\":[]";
    append_usage(json, usage);
    json += '}';
    http::append_event(events, json);
  }
  events += http::kSseDone;
}

Writing CompletionForm::write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces,
                                    Usage usage) {
  append_head(out, kCompletionEnvelope, facts);
  out += ",\"choices\":[";
  for (const Piece& piece : pieces) {
    if (piece.index != 0) out += ',';
    Writing choice = write_choice(out, piece);
    co_await choice;
  }
  out += ']';
  append_usage(out, usage);
  out += '}';
}

// The prompt as it came, or what its token ids say.
const std::string& CompletionForm::echo_of(const Piece& piece) {
  std::optional<std::string>& echo = echoes_[piece.prompt_index];
  if (!echo) echo = services_.tokenizer->decode(piece.prompt.ids, request_.skip_special_tokens);
  return *echo;
}

std::vector<TokenScore> CompletionForm::scores_of(const Piece& piece) {
  const std::size_t echo_length = request_.echo ? num_code_points(echo_of(piece)) : 0;
  std::vector<TokenScore> answer = answer_token_scores(piece.tokens, request_, echo_length);
  if (!request_.echo || !piece.first) return answer;
  std::vector<TokenScore> all = prompt_token_scores(piece.prompt, services_.tokenizer, request_, echo_length);
  all.insert(all.end(), answer.begin(), answer.end());
  return all;
}

Writing CompletionForm::write_choice(std::string& json, const Piece& piece) {
  const bool echoes = request_.echo && piece.first;
  const text::Tokenizer& tokenizer = *services_.tokenizer;
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{piece.index});
  writer.key("text").text(echoes ? echo_of(piece) + std::string(piece.text) : piece.text).key("logprobs");
  if (request_.logprobs) {
    const std::vector<TokenScore> scores = scores_of(piece);
    Writing logprobs = write_text_logprobs(writer, json, tokenizer, scores, request_.return_tokens_as_token_ids);
    co_await logprobs;
  } else {
    writer.null();
  }
  append_finish(writer, piece);
  if (piece.first && request_.prompt_logprobs) {
    writer.key("prompt_logprobs");
    Writing scores = write_prompt_logprobs(writer, json, tokenizer, piece.prompt, request_);
    co_await scores;
  }
  if (request_.return_token_ids) append_token_ids(writer, piece);
  writer.end_object();
}

std::unique_ptr<Generation> complete(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<CompletionForm>(services));
}

}  // namespace quire::api::openai
