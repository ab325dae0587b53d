// Makes the engine's requests for a settled request and its prompts: one sequence per choice, or one beam search per
// prompt.
// Thread  a worker; pure function.
// Fails   kInvalidArgument naming the field: a prompt that is empty, too long or has ids outside [0, logits_width);
//         max_tokens that do not fit; rules that forbid every token. Copies of a prompt are counted before they are
//         made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/fields/generation_request.h"
#include "api/sequences/prompt_run.h"
#include "api/services/services.h"
#include "api/services/slo_hints.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"
#include "core/flow/request.h"

namespace quire::api {

// Buffers for the engine's results of a prompt. They are large, and so not allocated on an io thread.
struct OutputBuffers {
  std::unique_ptr<bridge::PromptScores> scores;        // null: the prompt is not scored
  std::unique_ptr<bridge::PromptEmbedding> embedding;  // null: the prompt is not pooled
};

struct Sequences {
  std::vector<flow::Request> sequences;  // grouped by prompt
  std::vector<OutputBuffers> buffers;    // [sequences]
  std::vector<PromptRun> prompts;        // without scores
};

// The facts of a request that are not in its body.
struct SequenceFacts {
  std::int64_t seed = 0;
  TimePoint arrival;
  std::shared_ptr<const grammar::Grammar> grammar;  // null: none
  std::string tenant{};                             // tenant of its cache namespace; empty: the default one
  std::uint32_t tenant_id = 0;                      // tenant that policy fair charges
  std::uint32_t weight = 1;                         // policy fair divides its tokens by this
  requests::SloHints slo_hints{};
};

Result<Sequences> sequences_of(const GenerationRequest& request, std::vector<std::vector<TokenId>> prompts,
                               SequenceFacts facts, const Services& services);

}  // namespace quire::api
