#include "api/fields/settle.h"

#include <algorithm>
#include <string>
#include <utility>

namespace quire::api {
namespace {

Error no_place(const char* name, const std::string& where) {
  return invalid(name, std::string(name) + " cannot be used with " + where + ": leave it out");
}

// A beam search ranks by log probability: fields that change the distribution are refused, not ignored.
Result<Done> check_ranking(const GenerationRequest& request, const Given& given) {
  const sample::Params& sampling = request.sampling;
  const sample::Rules& rules = request.rules;
  const std::pair<const char*, bool> neutral[] = {
      {"temperature", sampling.temperature == 0.0f || sampling.temperature == 1.0f},
      {"top_p", sampling.top_p == 1.0f},
      {"top_k", sampling.top_k == 0},
      {"min_p", sampling.min_p == 0.0f},
      {"typical_p", sampling.typical_p == 1.0f},
      {"repetition_penalty", rules.repetition_penalty == 1.0f},
      {"presence_penalty", rules.presence_penalty == 0.0f},
      {"frequency_penalty", rules.frequency_penalty == 0.0f},
      {"logit_bias", rules.bias.empty()},
      {"allowed_token_ids", rules.allowed.empty()},
      {"bad_words", request.bad_words.empty()},
      {"min_tokens", rules.min_tokens == 0},
  };
  for (const auto& [name, is_neutral] : neutral) {
    if (given(name) && !is_neutral) return no_place(name, "a beam search, which ranks by log probability");
  }
  return Done{};
}

// Refuses fields that a beam search cannot obey, and results that it cannot return.
Result<Done> check_search(const GenerationRequest& request) {
  if (request.stream) {
    return invalid("use_beam_search",
                   "use_beam_search cannot be streamed: a beam search returns its results at the end");
  }
  if (!request.stop.empty()) return no_place("stop", "a beam search, which compares whole answers");
  if (request.kv_policy.kind != flow::KvPolicy::Kind::kFull) {
    return no_place("kv_policy", "a beam search, whose hypotheses share their blocks");
  }
  if (request.logprobs.value_or(0) > 0) {
    return invalid("logprobs",
                   "logprobs must be 0 with use_beam_search, which returns log probabilities of its own tokens only");
  }
  if (request.grammar_text || request.grammar) {
    const std::string field = request.grammar_text ? request.grammar_text->field : request.grammar_field;
    return invalid(field, field + " cannot be combined with use_beam_search: leave one of them out");
  }
  if (request.scores_prompt()) {
    return request.prompt_logprobs ? no_place("prompt_logprobs", "a beam search")
                                   : no_place("logprobs", "echo and a beam search");
  }
  return Done{};
}

Result<Done> settle_search(GenerationRequest& request, const Services& services, const char* wide, const Given& given) {
  if (Result<Done> checked = check_search(request); !checked) return checked.error();
  // Per hypothesis the search examines `best_of` candidates, and one more for each token that ends an answer.
  const std::size_t ends = (request.ignore_eos ? 0 : services.eos.size()) + request.stop_token_ids.size();
  const std::size_t most = std::min<std::size_t>(sample::kMaxTop, services.logits_width);
  const std::size_t widest = std::min<std::size_t>(services.max_num_seqs, most - std::min(most, ends));
  if (request.best_of > widest) {
    return invalid(wide, std::string(wide) + " may be at most " + std::to_string(widest) +
                             " with use_beam_search: its hypotheses run at the same time");
  }
  if (Result<Done> ranked = check_ranking(request, given); !ranked) return ranked.error();
  request.sampling = sample::Params{};
  request.sampling.temperature = 0.0f;
  request.sampling.logprob = request.logprobs.has_value();
  request.rules.repetition_penalty = 1.0f;  // the model's default is meant for sampling
  return Done{};
}

Result<Done> settle_choices(GenerationRequest& request, std::size_t num_prompts, const Services& services,
                            const Given& given) {
  if (!given("best_of")) request.best_of = request.n;
  const char* wide = given("best_of") ? "best_of" : "n";
  if (request.best_of < request.n) {
    return invalid("best_of", "best_of must be at least n, which is " + std::to_string(request.n));
  }
  if (!request.embeds() && num_prompts * request.best_of > services.limits.max_choices) {
    return invalid(wide, std::string(wide) + " is " + std::to_string(request.best_of) + " for each of " +
                             std::to_string(num_prompts) + " prompts; one request may ask for " +
                             std::to_string(services.limits.max_choices) + " choices in total: send several requests");
  }
  if (request.use_beam_search) return settle_search(request, services, wide, given);
  if (request.length_penalty != 1.0) {
    return invalid("length_penalty", "length_penalty needs \"use_beam_search\": true");
  }
  if (request.stream && request.best_of > request.n) {
    return invalid("best_of", "best_of above n cannot be streamed: the best answers are known only at the end");
  }
  request.sampling.logprob = request.best_of > request.n || request.logprobs.has_value();
  return Done{};
}

Result<Done> settle_scores(GenerationRequest& request) {
  if (request.embeds()) return Done{};
  const char* max_tokens = request.max_tokens_field;
  if (request.max_tokens == 0u && !request.echo && !request.prompt_logprobs) {
    return invalid(max_tokens, std::string(max_tokens) +
                                   " must be at least 1; 0 only scores the prompt, and needs echo or prompt_logprobs");
  }
  if (!request.scores_prompt()) return Done{};
  if (request.kv_policy.kind != flow::KvPolicy::Kind::kFull) {
    return no_place("kv_policy", "a request that scores its prompt");
  }
  return Done{};
}

}  // namespace

Result<Done> settle(GenerationRequest& request, std::size_t num_prompts, const Services& services, const Given& given) {
  if (given("stream_options") && !request.stream) {
    return invalid("stream_options", "stream_options needs \"stream\": true");
  }
  if (request.truncate_prompt_tokens == 0) {
    return invalid("truncate_prompt_tokens", "truncate_prompt_tokens must be at least 1, or -1");
  }
  if (!request.ignore_eos) {
    std::erase_if(request.stop_token_ids, [&services](TokenId id) {
      return std::find(services.eos.begin(), services.eos.end(), id) != services.eos.end();
    });
  }
  if (Result<Done> settled = settle_scores(request); !settled) return settled.error();
  if (Result<Done> settled = settle_choices(request, num_prompts, services, given); !settled) return settled.error();
  if (!request.use_beam_search) {
    request.sampling.num_top = std::max(request.logprobs.value_or(0), request.prompt_logprobs.value_or(0));
  }
  return Done{};
}

}  // namespace quire::api
