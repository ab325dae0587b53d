#include "core/engine/request_check.h"

#include <algorithm>

#include "core/base/kv_constants.h"
#include "core/engine/beam/beam.h"
#include "core/sample/params.h"

namespace quire::engine {
namespace {

bool can_apply(const sample::Rules& rules, TokenId vocab) {
  const std::vector<TokenId>& allowed = rules.allowed;
  const bool allowed_fit =
      allowed.empty() || (std::ranges::is_sorted(allowed) && allowed.front() >= 0 && allowed.back() < vocab);
  return allowed_fit && rules.repetition_penalty > 0.0f &&
         std::ranges::none_of(rules.bad_words, [](const auto& word) { return word.empty(); });
}

}  // namespace

bool fits(const flow::Request& request, const RequestBounds& bounds) {
  const auto vocab = static_cast<TokenId>(bounds.vocab);
  const bool ids_fit = std::all_of(request.prompt.begin(), request.prompt.end(),
                                   [vocab](TokenId token) { return token >= 0 && token < vocab; });
  const bool top_fits = request.sampling.num_top <= sample::kMaxTop;
  const bool rules_fit = !request.rules || can_apply(*request.rules, vocab);
  const bool length_fits = !request.prompt.empty() &&
                           (request.max_tokens >= 1 || request.scores_prompt || request.embeds()) &&
                           request.prompt.size() + request.max_tokens <= bounds.max_model_len;
  const flow::KvPolicy& policy = request.kv_policy;
  const bool policy_fits = policy.kind == flow::KvPolicy::Kind::kFull ||
                           (!request.scores_prompt && !bounds.has_window && policy.sinks >= kGroupTokens &&
                            policy.sinks % kGroupTokens == 0 && policy.window >= kSpanTokens &&
                            policy.window % kSpanTokens == 0 && policy.budget % kGroupTokens == 0);
  const auto num_candidates = [&] { return Beam::num_candidates(*request.beam, request.stop_tokens.size()); };
  const bool beam_fits =
      !request.beam || (!request.rules && !request.grammar && !request.scores_prompt && request.beam->num_best >= 1 &&
                        request.beam->num_best <= request.beam->width && request.beam->width <= bounds.max_num_seqs &&
                        num_candidates() <= std::min(bounds.vocab, sample::kMaxTop));
  const bool pooling_fits =
      !request.embeds() || (request.max_tokens == 0 && !request.scores_prompt && !request.rules && !request.grammar &&
                            !request.beam && policy.kind == flow::KvPolicy::Kind::kFull);
  return ids_fit && top_fits && rules_fit && length_fits && policy_fits && beam_fits && pooling_fits;
}

bool has_output_buffers(const bridge::Submission& submission, std::uint32_t hidden_width) {
  const flow::Request& request = submission.request;
  if (request.embeds()) {
    const bridge::PromptEmbedding* const embedding = submission.stream->embedding_to_write();
    return embedding != nullptr && !embedding->sums.empty() && embedding->sums.size() == hidden_width;
  }
  if (!request.scores_prompt) return true;
  const bridge::PromptScores* const scores = submission.stream->scores_to_write();
  return scores != nullptr && scores->logprobs.size() + 1 == request.prompt.size() &&
         scores->num_top >= request.sampling.num_top;
}

}  // namespace quire::engine
