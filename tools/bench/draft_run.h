// Throughput of an engine with a drafter on this thread: tokens per second while all streams are decoding.
//   Each run has a new engine without a prefix cache; the runner, and what the depth control has learned, are kept.
// Owner   the bench. Borrows the runner.
// Thread  main, in the engine's role.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/model/run/runner.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/drafter.h"

namespace quire::tools {

struct DraftRunShape {
  std::uint32_t num_blocks = 0;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_rows = 512;
  std::uint32_t max_logits_rows = 0;
  std::uint32_t vocab = 0;
  std::uint32_t max_model_len = 0;
  std::uint32_t max_draft_nodes = 0;
  std::uint32_t answer_tokens = 64;
  bool residual_groups = false;
};

struct DraftRunFigures {
  double tokens_per_s = 0;
  double tokens_per_step = 0;  // per stream
  std::vector<std::vector<TokenId>> answers;
};

// Both null: no drafts. `depth` null: every draft has its maximum size.
DraftRunFigures run_drafts(const DraftRunShape& shape, const std::vector<std::vector<TokenId>>& prompts,
                           model::Runner& runner, speculate::Drafter* drafter, speculate::DepthControl* depth)
    REQUIRES(engine_role);

}  // namespace quire::tools
