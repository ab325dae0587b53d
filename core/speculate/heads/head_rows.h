// The rows that a draft head's own layer has of what is committed: in the slots where the target's lie, so that a prefix found
// there is found here.
// Turn    observe() stores the rows of a step: q, k, v, and no more. Whoever drafts runs the last row of a sequence again for what
//         it says, begun with head.features()[feature].
// Missing rows of a context (K and V that were loaded, or made while nobody drafted) are run with features of zero, but for a
//         block's last one, whose feature is kept. One behind a true row is left as it is: its feature is right, and only the
//         token it was made for is another. A head that does not look ahead has no such row, and nothing is kept for it.
// Owner   the drafter. Ops and head outlive it.
// Thread  engine. It allocates for the longest sequences yet, not for steps.
// Source  rows by slot: ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/backend/ops.h"
#include "core/speculate/drafter.h"
#include "core/speculate/heads/draft_head.h"
#include "core/speculate/heads/stored_rows.h"
#include "core/speculate/row_batch.h"

namespace quire::speculate {

// As the target's runner has them.
struct RunnerLimits {
  std::uint32_t max_rows = 512;
  std::uint32_t max_sequences = 64;
  std::uint32_t max_model_len = 0;
  std::uint32_t block_tokens = 16;
  std::uint32_t num_blocks = 0;
  std::uint32_t num_swap_blocks = 0;
};

class HeadRows {
 public:
  // A sequence's last row, of the last step.
  struct Last {
    std::uint64_t step = 0;     // that ran it
    std::uint32_t feature = 0;  // of head.features()
    std::uint32_t position = 0;
  };

  HeadRows(backend::Ops& ops, DraftHead& head, const RunnerLimits& limits);

  void observe(const ObservedStep& step);
  // Null: the last step did not run it, it has gone on since, or the row does not see all that it should.
  const Last* last_of(const Asked& asked) const;
  void release(SeqId seq) { sequences_.erase(seq); }
  void follow(std::span<const flow::BlockOp> ops);

  std::uint32_t slot_of(std::span<const BlockId> table, std::uint32_t position) const;

 private:
  struct Sequence {
    std::vector<std::uint64_t> chain = {kChainRoot};  // as StoredRows
    std::vector<BlockId> table{};                     // as it was when last seen
    std::uint32_t looked_at = 0;                      // rows [0, looked_at) are there, as good as they get
    bool behind = false;                              // too many rows were missing for one call
    Last last{};
  };
  struct Missing {
    TokenId token;  // the next one
    std::uint32_t position;
    std::uint32_t slot;
    std::size_t observed;
    std::span<const float> feature;  // empty: not known
  };

  void look_at(const Observed& observed, Sequence& sequence);
  void find_missing(const Observed& observed, Sequence& sequence, std::size_t index);
  void store_missing();
  void store_observed(const backend::Buffer& states);
  void keep_features();
  // Of all that the row is a function of.
  std::uint64_t hash_of(const Sequence& sequence, std::uint32_t position) const;

  backend::Ops& ops_;
  DraftHead& head_;
  const RunnerLimits limits_;
  const bool looks_ahead_;
  StoredRows stored_;
  std::vector<std::byte> host_blocks_;
  std::unordered_map<SeqId, Sequence> sequences_;
  std::uint64_t step_ = 0;

  std::vector<const Observed*> observed_;  // in the order of their rows
  std::vector<Missing> missing_;
  std::vector<float> missing_features_;
  std::vector<std::uint32_t> picks_;
  std::vector<std::uint32_t> stored_features_;  // of the rows that are stored, by their place in picks_
  RowBatch rows_;
};

}  // namespace quire::speculate
