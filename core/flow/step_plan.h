// One engine step as the scheduler planned it: operations on whole blocks, then rows with the slots of their K and V,
// and the logits rows. Plain data.
// Shape   rows of one sequence are contiguous and, except for draft nodes, in order of position. T rows in all, S
//         sequences, P tokens per block, G groups of layers with blocks of their own. first_row is the cumulative query
//         length, first_position + num_rows the length of the sequence, draft nodes included.
// Owner   the scheduler, which reuses it from step to step so that planning does not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/edits.h"
#include "core/sample/params.h"
#include "core/sample/token_tree.h"

namespace quire::flow {

// An operation on a whole block, all layers of its group, before any row of the step is stored. Operations run in
// order: a block may be the target of one and the source of the next.
struct BlockOp {
  enum class Kind : std::uint8_t {
    kCopy,               // block `from` to block `to`
    kPoison,             // block `to` is filled with NaN, which shows reads of rows never stored (debugging)
    kSwapOut,            // block `from` to host block `to`
    kSwapIn,             // host block `from` to block `to`
    kCopyResidualGroup,  // int4: residual group `from` to residual group `to`, for a fork
  };
  Kind kind = Kind::kCopy;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

struct PlannedSequence {
  SeqId seq;
  std::uint32_t first_row = 0;       // index of its first row in the step
  std::uint32_t num_rows = 0;        // >= 1
  std::uint32_t first_position = 0;  // position of its first row; positions ascend by one
  // Its block table of group g is block_tables[first_table + g * num_table, first_table + (g + 1) * num_table).
  std::uint32_t first_table = 0;
  std::uint32_t num_table = 0;  // covers first_position + num_rows tokens
  bool samples = false;         // its last row (before draft nodes) samples a token: a choice comes back
  bool decodes = false;         // it has generated a token before, and goes on from there
  // Index, among all choices of the step before, of the sampled token that its only row takes as input: that step is in
  // flight, so the token is not known yet. If that choice is not finite, the row runs an arbitrary token, and its own
  // choice is discarded.
  static constexpr std::uint32_t kNoChoice = ~0u;
  std::uint32_t fed_by = kNoChoice;
  // Tokens of its prompt, or pending tokens, whose scores are wanted: each is scored by the row before it. These rows
  // are its last ones, or the last ones before the row that samples. A choice comes back for each, before the sampled
  // one. Borrowed until the step is collected.
  std::span<const TokenId> given{};
  // Lossy KvPolicy: bit g of kept_groups[first_kept + s] is set if the 16 positions from 256 s + 16 g are still there;
  // one word for each span before that of its rows, which all lie in one span. num_kept 0: all positions are there.
  std::uint32_t first_kept = 0;
  std::uint32_t num_kept = 0;
  // int4: its own running slot [0, max_sequences) for its residual group, the newest, incomplete group of 16 positions.
  // A sequence that gets a slot starts there at a multiple of 16, except a fork, for which the plan copies the group.
  std::uint32_t residual_group = 0;
  std::uint32_t num_pooled = 0;  // number of its last rows whose hidden states are wanted: Runner::pooled()
  // The attention that its rows paid to each group of 16 positions is wanted: Runner::accumulated_scores().
  bool wants_accumulated_scores = false;
  sample::Params sampling;  // read only if a choice comes back
  sample::Edits edits{};    // only if it samples: of rules and grammar; borrowed until the step is collected
  // Only if it samples: its draft. Its last num_nodes rows are the tree's first nodes, in the tree's order: node i lies
  // i + 1 slots behind its last token, and a choice comes back for it, after the sampled one. Borrowed until the step
  // is collected.
  const sample::TokenTree* draft = nullptr;
  std::uint32_t num_nodes = 0;
  std::span<const sample::Edits> node_edits{};  // [num_nodes], or empty without rules and grammar
};

struct StepPlan {
  std::vector<BlockOp> block_ops;
  std::vector<PlannedSequence> sequences;  // [S]
  std::vector<TokenId> tokens;             // [T] -1: see fed_by
  std::vector<std::uint32_t> positions;    // [T]
  std::vector<std::uint32_t> slots;        // [G, T] block id * P + offset in the block
  std::vector<BlockId> block_tables;       // all tables, one after the other, a sequence's by group
  std::vector<std::uint16_t> kept_groups;

  bool empty() const { return sequences.empty() && block_ops.empty(); }
  void clear() {
    block_ops.clear();
    sequences.clear();
    tokens.clear();
    positions.clear();
    slots.clear();
    block_tables.clear();
    kept_groups.clear();
  }
};

}  // namespace quire::flow
