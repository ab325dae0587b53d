// Step plans for the bench, made without a scheduler: S sequences of equal shape, each with its own blocks.
// Shape   sequence s holds blocks [s·B, (s+1)·B), B = blocks_per_sequence; each has a logits row and samples greedily.
// Thread  any; pure.
#pragma once

#include <cstdint>

#include "core/flow/step_plan.h"

namespace quire::tools {

flow::StepPlan bench_plan(std::uint32_t sequences, std::uint32_t rows, std::uint32_t first_position,
                          std::uint32_t blocks_per_sequence, std::uint32_t block_tokens, std::uint32_t vocab);

}  // namespace quire::tools
