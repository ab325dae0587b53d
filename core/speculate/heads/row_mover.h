// Copies of rows between device buffers, as steps that run no token.
// Shape   T rows; row indices ascend and may repeat.
// Owner   the drafter. Ops outlive it.
// Thread  made at startup, then engine. Each call is a complete step; nothing allocates.
// Fails   more than max_rows rows: CHECK.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/ops.h"

namespace quire::speculate {

class RowMover {
 public:
  RowMover(backend::Ops& ops, std::uint32_t max_rows);

  // out[i] = from[rows[i]].
  void pick(const backend::Buffer& from, std::span<const std::uint32_t> rows, backend::Buffer& out);
  // out[i] = table[0], i < num.
  void take_first(const backend::Weight& table, std::uint32_t num, backend::Buffer& out);

 private:
  backend::Batch rows(std::span<const TokenId> tokens, const backend::SequenceRows& all) const;

  backend::Ops& ops_;
  std::vector<TokenId> no_tokens_;          // [T] 0
  std::vector<std::uint32_t> positions_;    // [T] 0, 1, 2, …; also the slots, as nothing is stored
  std::vector<backend::LogitsRow> movers_;  // [T]
};

}  // namespace quire::speculate
