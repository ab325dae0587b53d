#include "core/speculate/heads/row_mover.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"

namespace quire::speculate {

RowMover::RowMover(backend::Ops& ops, std::uint32_t max_rows) : ops_(ops), no_tokens_(max_rows), positions_(max_rows) {
  std::iota(positions_.begin(), positions_.end(), 0u);
  movers_.reserve(max_rows);
}

backend::Batch RowMover::rows(std::span<const TokenId> tokens, const backend::SequenceRows& all) const {
  return {.tokens = tokens,
          .positions = std::span(positions_).first(tokens.size()),
          .slots = std::span(positions_).first(tokens.size()),
          .sequences = {&all, 1},
          .block_tables = {}};
}

void RowMover::pick(const backend::Buffer& from, std::span<const std::uint32_t> rows, backend::Buffer& out) {
  if (rows.empty()) return;
  const auto num = std::max(rows.back() + 1, static_cast<std::uint32_t>(rows.size()));
  CHECK_LE(num, no_tokens_.size());
  movers_.clear();
  for (const std::uint32_t row : rows) movers_.push_back({.row = row, .position = 0, .params = {}});
  const backend::SequenceRows all{.num_rows = num};
  backend::Batch batch = this->rows(std::span(no_tokens_).first(num), all);
  batch.logits_rows = movers_;
  ops_.begin(batch);
  ops_.gather_logits_rows(from, out);
  ops_.collect({});
}

void RowMover::take_first(const backend::Weight& table, std::uint32_t num, backend::Buffer& out) {
  CHECK_LE(num, no_tokens_.size());
  const backend::SequenceRows all{.num_rows = num};
  ops_.begin(rows(std::span(no_tokens_).first(num), all));
  ops_.embed(table, 1.0f, out);
  ops_.collect({});
}

}  // namespace quire::speculate
