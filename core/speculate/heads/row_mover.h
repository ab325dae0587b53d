// Steps of a device that run no token: rows of a buffer that move to others.
// Shape   T rows; rows named ascend and may repeat.
// Owner   whoever drafts. The Ops outlive it.
// Thread  made while starting; then engine. Each call is a step, begun and collected; nothing allocates.
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
  std::vector<std::uint32_t> positions_;    // [T] 0, 1, 2, …: slots, too, for nothing is stored
  std::vector<backend::LogitsRow> movers_;  // [T]
};

}  // namespace quire::speculate
