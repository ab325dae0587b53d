#include "api/openai/completions/completion_form.h"

#include <utility>

#include "api/http/sse_writer.h"
#include "api/openai/completions/fill_in.h"
#include "api/openai/completions/text_logprobs.h"
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

Result<std::vector<std::vector<TokenId>>> CompletionForm::prompts() {
  std::vector<std::vector<TokenId>> all;
  for (Prompt& prompt : request_.prompts) {
    Result<std::vector<TokenId>> ids =
        request_.suffix ? fill_in(prompt, request_, *services_.tokenizer) : ids_of(prompt);
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

Result<std::vector<TokenId>> CompletionForm::ids_of(const Prompt& prompt) const {
  if (const auto* given = std::get_if<std::vector<TokenId>>(&prompt)) return *given;
  std::vector<TokenId> ids = services_.tokenizer->encode(std::get<std::string>(prompt), request_.add_special_tokens);
  if (!ids.empty()) return ids;
  if (!services_.bos) return invalid("prompt", "prompt is empty, and this model has no token that begins a text");
  return std::vector<TokenId>{*services_.bos};
}

// ---- what is written

void CompletionForm::append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) {
  std::string json;
  append_head(json, kCompletionEnvelope, facts);
  json += ",\"choices\":[";
  append_choice(json, piece);
  json += ']';
  if (request_.include_usage && request_.continuous_usage) {
    append_usage(json, {piece.prompt.num_tokens, piece.num_tokens, {}});
  } else if (request_.include_usage) {
    json += ",\"usage\":null";
  }
  json += '}';
  http::append_event(events, json);
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

std::string CompletionForm::whole(const AnswerFacts& facts, std::span<const Piece> pieces, const Usage& usage) {
  std::string json;
  append_head(json, kCompletionEnvelope, facts);
  json += ",\"choices\":[";
  for (const Piece& piece : pieces) {
    if (piece.index != 0) json += ',';
    append_choice(json, piece);
  }
  json += ']';
  append_usage(json, usage);
  json += '}';
  return json;
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

void CompletionForm::append_choice(std::string& json, const Piece& piece) {
  const bool echoes = request_.echo && piece.first;
  const text::Tokenizer& tokenizer = *services_.tokenizer;
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{piece.index});
  writer.key("text").text(echoes ? echo_of(piece) + std::string(piece.text) : piece.text).key("logprobs");
  if (request_.logprobs) {
    append_text_logprobs(writer, tokenizer, scores_of(piece), request_.return_tokens_as_token_ids);
  } else {
    writer.null();
  }
  append_finish(writer, piece);
  if (piece.first && request_.prompt_logprobs) {
    writer.key("prompt_logprobs");
    append_prompt_logprobs(writer, tokenizer, piece.prompt, request_);
  }
  if (request_.return_token_ids) append_token_ids(writer, piece);
  writer.end_object();
}

std::unique_ptr<Generation> complete(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<CompletionForm>(services));
}

}  // namespace quire::api::openai
