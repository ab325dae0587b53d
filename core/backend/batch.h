// The input of one step on a device: rows, positions, slots, block tables and logits rows, as borrowed views.
// Shape   T rows, S sequences, R logits rows, N groups of layers in the cache (KvLayer::group). Rows of a sequence are
//         contiguous; their positions ascend by one, except at draft-tree nodes.
// Owner   the caller. The viewed data stays alive and unchanged until collect() of this step returns.
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
  std::uint32_t first_table = 0;  // of each group's tables: block_tables[first_table + p / P] holds position p
  std::uint32_t num_table = 0;
  // Dropped earlier positions: bit g of kept_groups[first_kept + s] is set if the 16 positions from 256 s + 16 g are
  // still stored. There is one word per span of 256 positions before the span of the rows; all rows lie in one span.
  // The first group is always stored. num_kept 0: nothing was dropped.
  std::uint32_t first_kept = 0;
  std::uint32_t num_kept = 0;
  // int4: index of the sequence's residual group (KIVI): the newest, unfinished group of 16 positions, kept in full
  // precision from step to step. No two sequences of a step share one; a sequence that has no rows in it yet begins at
  // a multiple of 16.
  std::uint32_t residual_group = 0;
  // First index and count of the sequence's accumulated attention scores in StepOps::read_accumulated_scores(): one for
  // each group of 16 positions up to its last row. num_accumulated_scores 0: not requested.
  std::uint32_t first_accumulated_score = 0;
  std::uint32_t num_accumulated_scores = 0;
  // A draft tree that is not a chain: the sequence's last num_nodes rows are its nodes; the row before them is the
  // root. Batch::ancestors[first_node + i] has a bit for each node that node i attends to, itself included. Node i's
  // position is popcount(ancestors) after the root's; its K and V are in slot i + 1 after the root's. num_nodes 0:
  // the positions of all rows ascend by one. Not for int4.
  std::uint32_t first_node = 0;
  std::uint32_t num_nodes = 0;

  std::uint32_t num_plain() const { return num_rows - num_nodes; }
  std::uint32_t root_position() const { return first_position + num_plain() - 1; }  // requires num_nodes > 0
};

struct LogitsRow {
  std::uint32_t row = 0;
  std::uint32_t position = 0;  // of the next token: the row's position + 1. Counter of the sampling noise.
  sample::Params params;
  sample::Edits edits{};  // edits of the request's rules, applied to the logits before sampling
  TokenId given = -1;     // >= 0: nothing is sampled; this token's log probability and rank are wanted
  // Draft verification: this row, followed by its draft nodes. A node is sampled only if its parent was sampled and
  // produced the node's token; of siblings with the same token the first one counts. params.accept is the same for all
  // rows of a verification: it says if a row is sampled as without a draft, or by rejection sampling
  // (core/sample/acceptance.h). A lookahead node that the verification does not reach gives the token of its highest
  // logit, without logits edits.
  std::uint32_t num_nodes = 0;               // draft nodes after this row; 0 in the nodes themselves
  const sample::TokenTree* draft = nullptr;  // requires num_nodes > 0
};

using sample::Choice;

// A row whose token was not known when the batch was made: it takes the token sampled at index `logits_row` of the
// previous batch's logits rows. If that row was not finite, this row runs with any token and its result is ignored.
struct FedRow {
  std::uint32_t row = 0;
  std::uint32_t logits_row = 0;
};

struct Batch {
  std::span<const TokenId> tokens;           // [T] -1: the row is in `fed`
  std::span<const std::uint32_t> positions;  // [T]
  std::span<const std::uint32_t> slots;      // [N, T] block id * P + offset
  std::span<const SequenceRows> sequences;   // [S]
  std::span<const BlockId> block_tables;     // [N, tables of all sequences] those that no row reads may hold any id
  std::span<const LogitsRow> logits_rows{};  // [R] rows ascending
  std::span<const std::uint16_t> kept_groups{};
  std::uint32_t num_accumulated_scores = 0;    // total over all sequences
  std::span<const std::uint64_t> ancestors{};  // of the nodes of all draft trees
  std::span<const FedRow> fed{};               // rows ascending; empty unless Ops::depth() > 1

  std::uint32_t num_rows() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t num_groups() const {
    return tokens.empty() ? 1 : static_cast<std::uint32_t>(slots.size() / tokens.size());
  }
  // The batch as layers of one group see it: slots [T], and its tables.
  Batch of_group(std::uint32_t group) const {
    Batch one = *this;
    const std::size_t num_tables = block_tables.size() / num_groups();
    one.slots = slots.subspan(group * tokens.size(), tokens.size());
    one.block_tables = block_tables.subspan(group * num_tables, num_tables);
    return one;
  }
};

}  // namespace quire::backend
