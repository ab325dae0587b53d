// One engine step as the scheduler planned it: rows, where each row's K and V go, and who speaks. Plain data.
// Shape   rows of one sequence are contiguous and in position order. T rows in all, S sequences, P tokens per block.
// Owner   built by the scheduler, reused from step to step so that planning does not allocate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::flow {

struct PlannedSequence {
  SeqId seq;
  std::uint32_t first_row = 0;       // index of its first row in the step
  std::uint32_t num_rows = 0;        // >= 1
  std::uint32_t first_position = 0;  // position of its first row; positions ascend by one
  std::uint32_t first_table = 0;     // its block table is block_tables[first_table, first_table + num_table)
  std::uint32_t num_table = 0;       // covers first_position + num_rows tokens
  bool speaks = false;               // its last row's logits are sampled: a choice comes back
  sample::Params sampling;           // read only when it speaks
};

struct StepPlan {
  std::vector<PlannedSequence> sequences;  // [S]
  std::vector<TokenId> tokens;             // [T]
  std::vector<std::uint32_t> positions;    // [T]
  std::vector<std::uint32_t> slots;        // [T] block id * P + offset in the block
  std::vector<BlockId> block_tables;       // all tables, one after the other

  bool empty() const { return sequences.empty(); }
  void clear() {
    sequences.clear();
    tokens.clear();
    positions.clear();
    slots.clear();
    block_tables.clear();
  }
};

}  // namespace quire::flow
