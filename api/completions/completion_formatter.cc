#include "api/completions/completion_formatter.h"

#include <utility>

#include "api/completions/fill_in.h"
#include "api/completions/text_logprobs.h"
#include "api/generation/envelope.h"
#include "api/generation/prompt_logprobs.h"
#include "api/generation/token_text.h"
#include "api/json/response_writer.h"
#include "api/sequences/encode.h"
#include "api/wire/sse_writer.h"

namespace quire::api {
namespace {

constexpr Envelope kCompletionEnvelope{"cmpl-", "text_completion"};

}  // namespace

// ---- before admission

Result<Done> CompletionFormatter::read(const std::string& body) {
  Result<CompletionRequest> parsed = parse_completion_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> CompletionFormatter::prompts(Allowance& allowance) {
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

Result<std::vector<TokenId>> CompletionFormatter::ids_of(const Prompt& prompt, Allowance& allowance) const {
  if (const auto* given = std::get_if<std::vector<TokenId>>(&prompt)) return *given;
  Result<std::vector<TokenId>> ids = encode_prompt(std::get<std::string>(prompt), request_, services_, allowance);
  if (!ids || !ids->empty()) return ids;
  if (!services_.bos) return invalid("prompt", "prompt is empty, and this model has no BOS token");
  return std::vector<TokenId>{*services_.bos};
}

// ---- writing the answer

void CompletionFormatter::append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) {
  write_delta(events, facts, delta).finish();
}

Writing CompletionFormatter::write_delta(std::string& events, const AnswerFacts& facts, ChoiceDelta delta) {
  events += http::kSseEvent;
  append_head(events, kCompletionEnvelope, facts);
  events += ",\"choices\":[";
  Writing choice = write_choice(events, delta);
  co_await choice;
  events += ']';
  append_usage_so_far(events, delta);
  events += '}';
  events += http::kSseEventEnd;
}

void CompletionFormatter::append_usage_so_far(std::string& json, const ChoiceDelta& delta) const {
  if (request_.include_usage && request_.continuous_usage) {
    append_usage(json, {delta.prompt.num_tokens, delta.num_tokens, {}});
  } else if (request_.include_usage) {
    json += ",\"usage\":null";
  }
}

void CompletionFormatter::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
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

Writing CompletionFormatter::write_whole(std::string& out, const AnswerFacts& facts,
                                         std::span<const ChoiceDelta> choice_deltas, Usage usage) {
  append_head(out, kCompletionEnvelope, facts);
  out += ",\"choices\":[";
  for (const ChoiceDelta& delta : choice_deltas) {
    if (delta.index != 0) out += ',';
    Writing choice = write_choice(out, delta);
    co_await choice;
  }
  out += ']';
  append_usage(out, usage);
  out += '}';
}

// The prompt's text as it was sent; of a prompt of token ids, or a truncated one, the text of its ids.
const std::string& CompletionFormatter::echo_of(const ChoiceDelta& delta) {
  std::optional<std::string>& echo = echoes_[delta.prompt_index];
  if (!echo) echo = services_.tokenizer->decode(delta.prompt.ids, request_.skip_special_tokens);
  return *echo;
}

std::vector<TokenScore> CompletionFormatter::scores_of(const ChoiceDelta& delta) {
  const std::size_t echo_length = request_.echo ? num_code_points(echo_of(delta)) : 0;
  std::vector<TokenScore> answer = answer_token_scores(delta.tokens, request_, echo_length);
  if (!request_.echo || !delta.first) return answer;
  std::vector<TokenScore> all = prompt_token_scores(delta.prompt, services_.tokenizer, request_, echo_length);
  all.insert(all.end(), answer.begin(), answer.end());
  return all;
}

Writing CompletionFormatter::write_choice(std::string& json, const ChoiceDelta& delta) {
  const bool echoes = request_.echo && delta.first;
  const text::Tokenizer& tokenizer = *services_.tokenizer;
  JsonWriter writer(json);
  writer.begin_object().key("index").number(std::uint64_t{delta.index});
  writer.key("text").text(echoes ? echo_of(delta) + std::string(delta.text) : delta.text).key("logprobs");
  if (request_.logprobs) {
    const std::vector<TokenScore> scores = scores_of(delta);
    Writing logprobs = write_text_logprobs(writer, json, tokenizer, scores, request_.return_tokens_as_token_ids);
    co_await logprobs;
  } else {
    writer.null();
  }
  append_finish(writer, delta);
  if (delta.first && request_.prompt_logprobs) {
    writer.key("prompt_logprobs");
    Writing scores = write_prompt_logprobs(writer, json, tokenizer, delta.prompt, request_);
    co_await scores;
  }
  if (request_.return_token_ids) append_token_ids(writer, delta);
  writer.end_object();
}

std::unique_ptr<Generation> complete(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<CompletionFormatter>(services));
}

}  // namespace quire::api
