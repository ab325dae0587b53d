// A prompt as the engine ran it, for answers that contain it.
// Owner   the Generation. Borrows scores and embedding from its streams.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"

namespace quire::api {

struct PromptRun {
  std::uint32_t num_tokens = 0;
  std::vector<TokenId> ids;  // empty unless the answer needs them: echo, return_token_ids, prompt_logprobs
  const bridge::PromptScores* scores = nullptr;        // null: not scored, or not yet
  const bridge::PromptEmbedding* embedding = nullptr;  // null: not pooled, or not yet
};

}  // namespace quire::api
