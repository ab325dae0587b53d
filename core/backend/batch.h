// One step as a device sees it: rows, positions, slots, block tables, and the logits rows. Borrowed views.
// Shape   T rows, S sequences, R logit rows. Rows of a sequence are contiguous, positions ascend by one inside it, but
//         for a draft's.
// Owner   the caller; must stay alive and unchanged until collect() of this step returns.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/sample/edits.h"
#include "core/sample/params.h"
#include "core/sample/token_tree.h"

namespace quire::backend {

struct SequenceRows {
  std::uint32_t first_row = 0;
  std::uint32_t num_rows = 0;
  std::uint32_t first_position = 0;
  std::uint32_t first_table = 0;  // block_tables[first_table + p / P] holds position p
  std::uint32_t num_table = 0;
  // Where earlier positions were dropped: bit g of kept_groups[first_kept + s] says that the 16 positions from
  // 256 s + 16 g are still there, one word for each span before that of the rows, which all lie in one. The first group
  // is always there. num_kept 0: everything is.
  std::uint32_t first_kept = 0;
  std::uint32_t num_kept = 0;
  // int4: where the sequence's newest, unfinished group of 16 positions is kept from step to step, in full precision.
  // No two sequences of a step share one; a sequence that has none yet begins at a multiple of 16.
  std::uint32_t open_group = 0;
  // Place and number of its accumulated scores, one for each group of 16 positions up to its last row, in
  // Ops::read_accumulated_scores(). num_accumulated_scores 0: not wanted.
  std::uint32_t first_accumulated_score = 0;
  std::uint32_t num_accumulated_scores = 0;
  // A draft that is no chain: its last rows are a tree's nodes below the row before them, the root.
  // Batch::ancestors[first_node + i] says which nodes node i sees, itself included (bit by node); it stands popcount
  // positions behind the root, and its K and V in the slot i + 1 behind the root's. num_nodes 0: all rows ascend by one
  // position. Not for int4.
  std::uint32_t first_node = 0;
  std::uint32_t num_nodes = 0;

  std::uint32_t num_plain() const { return num_rows - num_nodes; }
  std::uint32_t root_position() const { return first_position + num_plain() - 1; }  // where num_nodes > 0
};

struct LogitsRow {
  std::uint32_t row = 0;
  std::uint32_t position = 0;  // of the token to be emitted: the row's position + 1. The noise counter.
  sample::Params params;
  sample::Edits edits{};  // what the sequence's rules do to the row before a token is drawn
  TokenId given = -1;     // >= 0: nothing is drawn, this token's log probability and rank are wanted
  // Draft verification: this row, followed by its draft nodes. A node is sampled only if its parent was sampled and
  // produced the node's token; of siblings with the same token the first one counts. params.accept, the same for all
  // of a verification, says whether a row is sampled as without a draft or by the rule of core/sample/acceptance.h. A
  // lookahead node that no verification reaches gives the token of its highest logit, without any logits edits.
  std::uint32_t num_nodes = 0;               // behind this one; 0 for those nodes themselves
  const sample::TokenTree* draft = nullptr;  // where num_nodes > 0
};

struct Choice {
  TokenId token = -1;                        // drawn or given; -1: a node that no walk came to, and no lookahead node
  bool finite = true;                        // false: the row's logits held a NaN or infinity
  float logprob = 0.0f;                      // of the token, where asked for
  std::span<const sample::Candidate> top{};  // [num_top] where asked for; the device's, until its next begin()
  std::uint32_t rank = 0;                    // of a given token: 1 + how many have a higher logit
};

// A row whose token nobody knew when the batch was made: the choice of that logits row of the batch begun before this
// one.
// Where that choice is not finite the row runs any token, and nobody looks at what becomes of it.
struct FedRow {
  std::uint32_t row = 0;
  std::uint32_t logits_row = 0;
};

struct Batch {
  std::span<const TokenId> tokens;           // [T] -1: of a row in `fed`
  std::span<const std::uint32_t> positions;  // [T]
  std::span<const std::uint32_t> slots;      // [T] block id * P + offset
  std::span<const SequenceRows> sequences;   // [S]
  std::span<const BlockId> block_tables;     // what no row of a sequence looks at need not be there: any id will do
  std::span<const LogitsRow> logits_rows{};  // [R] rows ascending
  std::span<const std::uint16_t> kept_groups{};
  std::uint32_t num_accumulated_scores = 0;    // of all sequences together
  std::span<const std::uint64_t> ancestors{};  // of all drafts' nodes
  std::span<const FedRow> fed{};               // rows ascending; only for ops of more steps than one (Ops::depth())

  std::uint32_t num_rows() const { return static_cast<std::uint32_t>(tokens.size()); }
};

}  // namespace quire::backend
