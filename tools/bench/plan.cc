#include "tools/bench/plan.h"

#include "core/kv/layout.h"

namespace quire::tools {

flow::StepPlan bench_plan(std::uint32_t sequences, std::uint32_t rows, std::uint32_t first_position,
                          std::uint32_t blocks_per_sequence, std::uint32_t block_tokens, std::uint32_t vocab) {
  flow::StepPlan plan;
  for (std::uint32_t s = 0; s < sequences; ++s) {
    const std::uint32_t first_block = s * blocks_per_sequence;
    flow::PlannedSequence planned;
    planned.seq = SeqId(s + 1);
    planned.first_row = static_cast<std::uint32_t>(plan.tokens.size());
    planned.num_rows = rows;
    planned.first_position = first_position;
    planned.first_table = static_cast<std::uint32_t>(plan.block_tables.size());
    planned.num_table = kv::blocks_for(first_position + rows, block_tokens);
    planned.samples = true;
    planned.residual_group = s;
    planned.sampling.temperature = 0;
    for (std::uint32_t i = 0; i < planned.num_table; ++i) plan.block_tables.push_back(BlockId(first_block + i));
    for (std::uint32_t position = first_position; position < first_position + rows; ++position) {
      plan.tokens.push_back(static_cast<TokenId>((s * 7919u + position * 104729u) % vocab));
      plan.positions.push_back(position);
      plan.slots.push_back(kv::slot_of(BlockId(first_block + position / block_tokens), position, block_tokens));
    }
    plan.sequences.push_back(planned);
  }
  return plan;
}

}  // namespace quire::tools
