#include "api/sequences/sequences.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/sequences/deadline_check.h"
#include "api/sequences/overflow.h"
#include "api/sequences/rules.h"
#include "api/services/cache_namespace.h"

namespace quire::api {
namespace {

using Ids = std::vector<TokenId>;

// The acceptance rule of draft tokens. A request that has no drafts gets kMatch, so that it samples as without
// speculation.
sample::Accept accept_of(const GenerationRequest& request, const Services& services) {
  const bool drafted = request.speculation.enabled && !services.speculative_methods.empty() &&
                       request.kv_policy.kind == flow::KvPolicy::Kind::kFull && !request.use_beam_search;
  return drafted ? request.accept.value_or(services.accept) : sample::Accept::kMatch;
}

// A sequence with the fields that all prompts have in common.
flow::Request sequence_for_all(const GenerationRequest& request, SequenceFacts facts, const Services& services) {
  flow::Request sequence;
  sequence.arrival = facts.arrival;
  sequence.sampling = request.sampling;
  sequence.sampling.accept = accept_of(request, services);
  sequence.sampling.seed = static_cast<std::uint64_t>(facts.seed);
  sequence.grammar = std::move(facts.grammar);
  sequence.tenant = facts.tenant_id;
  sequence.weight = facts.weight;
  if (!request.ignore_eos) sequence.stop_tokens = services.eos;
  sequence.stop_tokens.insert(sequence.stop_tokens.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  sequence.priority = request.priority.value_or(facts.slo_hints.priority.value_or(0));
  if (const auto deadline = deadline_of(request, facts.slo_hints)) {
    sequence.deadline = facts.arrival + deadline->after_arrival;
  }
  if (facts.slo_hints.first_token) sequence.first_token_by = facts.arrival + *facts.slo_hints.first_token;
  sequence.token_time = facts.slo_hints.token_time;
  sequence.kv_policy = request.kv_policy;
  sequence.speculation = request.speculation;
  sequence.pooling = request.pooling;
  if (request.use_beam_search) {
    sequence.beam = flow::BeamSearch{request.best_of, request.n, request.length_penalty};
  }
  return sequence;
}

std::optional<CacheNamespace> namespace_of_prompt(const GenerationRequest& request, std::string_view tenant,
                                                  const Services& services) {
  if (request.kv_policy.kind != flow::KvPolicy::Kind::kFull) return std::nullopt;
  if (services.prefix_caching) {
    return namespace_of_tenant(services.fingerprint, tenant, request.cache_salt);
  }
  if (request.best_of > 1) return unique_cache_namespace();
  return std::nullopt;
}

Result<Done> check_ids(const Ids& ids, const GenerationRequest& request, const Services& services) {
  const std::string field = request.prompt_field;
  if (ids.empty()) return invalid(field, field + " has no tokens");
  if (!all_below(ids, services.logits_width)) {
    return invalid(field, field + " has a token id outside the model's vocabulary");
  }
  return Done{};
}

// Keeps the last tokens, which the answer continues.
void truncate(Ids& ids, const GenerationRequest& request, const Services& services) {
  if (!request.truncate_prompt_tokens) return;
  std::size_t keep = static_cast<std::size_t>(std::max(*request.truncate_prompt_tokens, 1));
  if (*request.truncate_prompt_tokens < 0) {
    const std::size_t wanted = request.max_tokens.value_or(1);
    keep = services.max_model_len - std::min<std::size_t>(wanted, services.max_model_len - 1);
  }
  if (ids.size() > keep) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(keep));
}

Result<std::uint32_t> max_tokens_for(std::size_t prompt_tokens, const GenerationRequest& request,
                                     const Services& services) {
  const std::size_t limit = services.max_model_len;
  const std::size_t least = request.max_tokens == 0u ? 0 : 1;
  if (prompt_tokens + least > limit) return context_overflow(request, prompt_tokens, services);
  const std::size_t room = limit - prompt_tokens;
  if (!request.max_tokens) return static_cast<std::uint32_t>(std::min<std::size_t>(request.default_max_tokens, room));
  if (*request.max_tokens > room) return context_overflow(request, prompt_tokens, services);
  return *request.max_tokens;
}

Result<Done> check_min_tokens(std::uint32_t max_tokens, const GenerationRequest& request) {
  if (request.rules.min_tokens <= max_tokens) return Done{};
  return invalid("min_tokens", "min_tokens is " + std::to_string(request.rules.min_tokens) +
                                   " and the answer may have at most " + std::to_string(max_tokens) +
                                   " tokens: ask for fewer, or raise max_tokens");
}

// The estimated bytes of an answer that repeat its prompt.
std::uint64_t repeated_bytes_of(const GenerationRequest& request, std::uint64_t num_tokens) {
  static constexpr std::uint64_t kText = 8, kId = 8, kName = 40, kEntry = 72;  // bytes per token
  std::uint64_t of_token = 0;
  if (request.echo) of_token += kText;
  if (request.echo && request.logprobs) of_token += kName * (2 + *request.logprobs);
  if (request.prompt_logprobs) of_token += kEntry * (1 + *request.prompt_logprobs);
  if (request.return_token_ids) of_token += kId;
  return of_token * num_tokens;
}

// Limits the bytes of n answers that each repeat the prompt: it is computed once, but written n times.
Result<Done> check_repeated(std::uint64_t bytes, const GenerationRequest& request) {
  static constexpr std::uint64_t kMaxRepeatedBytes = std::uint64_t{64} << 20;
  if (request.n == 1 || bytes <= kMaxRepeatedBytes / request.n) return Done{};
  const char* what = request.prompt_logprobs ? "prompt_logprobs" : request.echo ? "echo" : "return_token_ids";
  return invalid("n", "n is " + std::to_string(request.n) + ", and every answer repeats its prompt (" + what +
                          "), about " + std::to_string(bytes) + " bytes; the limit for all answers is " +
                          std::to_string(kMaxRepeatedBytes) +
                          ". Request it with n = 1, and the other answers without it");
}

OutputBuffers room_for(const flow::Request& sequence, const Services& services) {
  OutputBuffers buffers;
  if (sequence.scores_prompt) {
    buffers.scores = std::make_unique<bridge::PromptScores>(sequence.prompt.size(), sequence.sampling.num_top);
  }
  if (sequence.embeds()) buffers.embedding = std::make_unique<bridge::PromptEmbedding>(services.hidden_size);
  return buffers;
}

}  // namespace

Result<Sequences> sequences_of(const GenerationRequest& request, std::vector<Ids> prompts, SequenceFacts facts,
                               const Services& services) {
  const std::string tenant = facts.tenant;
  flow::Request sequence = sequence_for_all(request, std::move(facts), services);
  Result<std::shared_ptr<const sample::Rules>> rules = rules_of(request, sequence.stop_tokens, services);
  if (!rules) return rules.error();
  sequence.rules = std::move(*rules);

  Sequences out;
  const std::uint32_t copies = request.use_beam_search ? 1 : request.best_of;
  const std::uint64_t most = services.queue.limits().max_tokens;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t repeated_bytes = 0;
  for (Ids& ids : prompts) {
    truncate(ids, request, services);
    if (Result<Done> checked = check_ids(ids, request, services); !checked) return checked.error();
    const Result<std::uint32_t> max_tokens = max_tokens_for(ids.size(), request, services);
    if (!max_tokens) return max_tokens.error();
    if (Result<Done> checked = check_min_tokens(*max_tokens, request); !checked) return checked.error();
    prompt_tokens += ids.size();
    if (prompt_tokens * copies > most) {  // checked before the copies are made
      const std::string field = request.prompt_field;
      return invalid(field, field + ": its sequences have more than " + std::to_string(most) +
                                " prompt tokens in total, the limit of the waiting line: send several requests");
    }
    repeated_bytes += repeated_bytes_of(request, ids.size());
    if (Result<Done> checked = check_repeated(repeated_bytes, request); !checked) return checked.error();
    out.prompts.push_back({.num_tokens = static_cast<std::uint32_t>(ids.size()), .ids = {}, .scores = nullptr});
    if (request.keeps_prompt()) out.prompts.back().ids = ids;
    sequence.prompt = std::move(ids);
    sequence.max_tokens = *max_tokens;
    sequence.cache_namespace = namespace_of_prompt(request, tenant, services);
    for (std::uint32_t i = 0; i < copies; ++i) {
      sequence.sampling.choice_index = i;
      // The first sequence's scores serve all choices; without an answer scoring is all that a sequence does.
      sequence.scores_prompt = request.scores_prompt() && (i == 0 || *max_tokens == 0);
      out.sequences.push_back(sequence);
      out.buffers.push_back(room_for(sequence, services));
    }
  }
  return out;
}

}  // namespace quire::api
