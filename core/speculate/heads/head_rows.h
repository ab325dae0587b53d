// Rows of a draft head's own layer for committed tokens, in the same slots as the target's rows, so that a prefix found
// in the prefix cache has the head's rows too.
// Calls   observe() stores K and V of a step's rows. The drafter runs a sequence's last row again for its output, with
//         head.features()[feature] as input.
// Missing rows of a context (K and V that were loaded, or computed while the sequence was not tracked) are computed
// from zero features, a block's last row from its stored feature. A row that follows a right row and was stored for
// another next token is left: its feature is right, only the token differs. A head that does not look ahead has no such
// rows, and no features are stored for it.
// Owner   the drafter. Ops and head outlive it.
// Thread  engine. Allocates for longer sequences than any before, not for steps.
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

// Limits of the target's runner.
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
  // A sequence's last row in the last step.
  struct Last {
    std::uint64_t step = 0;     // number of that step
    std::uint32_t feature = 0;  // index in head.features()
    std::uint32_t position = 0;
  };

  HeadRows(backend::Ops& ops, DraftHead& head, const RunnerLimits& limits);

  void observe(const ObservedStep& step);
  // Null if the last step did not run the sequence, if it has more tokens since, or if the row would attend to rows
  // that are missing or dropped.
  const Last* last_of(const Asked& asked) const;
  void release(SeqId seq) { sequences_.erase(seq); }
  void track(std::span<const flow::BlockOp> ops);

  std::uint32_t slot_of(std::span<const BlockId> table, std::uint32_t position) const;

 private:
  struct Sequence {
    std::vector<std::uint64_t> chain = {kChainRoot};  // see StoredRows
    std::vector<BlockId> table{};                     // as last seen
    std::uint32_t looked_at = 0;                      // rows [0, looked_at) are stored, as right as they get
    bool behind = false;                              // too many rows were missing for one call
    Last last{};
  };
  struct Missing {
    TokenId token;  // at position + 1
    std::uint32_t position;
    std::uint32_t slot;
    std::size_t observed;
    std::span<const float> feature;  // empty: unknown
  };

  void look_at(const Observed& observed, Sequence& sequence);
  void find_missing(const Observed& observed, Sequence& sequence, std::size_t index);
  void store_missing();
  void store_observed(const backend::Buffer& states);
  void keep_features();
  // Hash of everything that the row depends on.
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
  std::vector<std::uint32_t> stored_features_;  // of the stored rows: indices in picks_
  RowBatch rows_;
};

}  // namespace quire::speculate
