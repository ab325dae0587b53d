// One engine step as the scheduler planned it: what happens to whole blocks first, then rows, where each row's K and V
// go,
// and who speaks. Plain data.
// Shape   rows of one sequence are contiguous and, but for a draft's, in position order. T rows in all, S sequences, P
//         tokens per block. first_row is the cumulative query length, first_position + num_rows the length of the
//         sequence, its draft's nodes included.
// Owner   built by the scheduler, reused from step to step so that planning does not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/edits.h"
#include "core/sample/params.h"
#include "core/sample/token_tree.h"

namespace quire::flow {

// Something done to a whole block, all layers, before any row of the step is stored. In order: a block may be the
// target of one and the source of the next.
struct BlockOp {
  enum class Kind : std::uint8_t {
    kCopy,           // block `from` to block `to`
    kPoison,         // block `to` is filled with NaN: whoever reads what nobody stored is found out (debugging)
    kSwapOut,        // block `from` to host block `to`
    kSwapIn,         // host block `from` to block `to`
    kCopyOpenGroup,  // int4: open group `from` to open group `to`, for a fork
  };
  Kind kind = Kind::kCopy;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

// In a block table: given back, because no row will look at it again (a window passed by, or a KvPolicy).
inline constexpr BlockId kDroppedBlock{~0u};

struct PlannedSequence {
  SeqId seq;
  std::uint32_t first_row = 0;       // index of its first row in the step
  std::uint32_t num_rows = 0;        // >= 1
  std::uint32_t first_position = 0;  // position of its first row; positions ascend by one
  std::uint32_t first_table = 0;     // its block table is block_tables[first_table, first_table + num_table)
  std::uint32_t num_table = 0;       // covers first_position + num_rows tokens
  bool speaks = false;               // its last row's logits are sampled: a choice comes back
  bool decodes = false;              // it said something before, and goes on from there
  // Its only row's token is not known yet: what this choice says, counted from the first, of the step before, which is
  // in flight. Where that says nothing (it is not finite) the row runs some token, and its choice is nobody's.
  static constexpr std::uint32_t kNoChoice = ~0u;
  std::uint32_t fed_by = kNoChoice;
  // Tokens of its prompt whose scores are wanted, each from the row before it: of its last rows, or where it speaks of
  // the last ones before that. A choice comes back for each, before the one above. Borrowed until the step is
  // collected.
  std::span<const TokenId> given{};
  // Lossy KvPolicy: bit g of kept_groups[first_kept + s] says that the 16 positions from 256 s + 16 g are still there;
  // one word
  // for each span before that of its rows, which all lie in one span. num_kept 0: everything is there.
  std::uint32_t first_kept = 0;
  std::uint32_t num_kept = 0;
  // int4: the sequence's own place [0, max_sequences) as long as it runs, for its newest, unfinished group of 16
  // positions. A sequence that begins anew in a place, for the first time or again, begins at a multiple of 16.
  std::uint32_t open_group = 0;
  std::uint32_t num_pooled = 0;  // so many of its last rows have their hidden states wanted: Runner::pooled()
  bool wants_accumulated_scores =
      false;  // how much its rows looked at each group of 16 positions comes back: Runner::accumulated_scores()
  sample::Params sampling;  // read only when a choice comes back
  sample::Edits edits{};    // only when it speaks: of its rules; borrowed from the sequence until the step is collected
  // Only when it speaks: guesses at what it says. Of its rows the last num_nodes are the tree's first nodes, in its
  // order: node i stands in the slot i + 1 behind its last token's, and for each a choice comes back, after that
  // token's own. Borrowed until the step is collected.
  const sample::TokenTree* draft = nullptr;
  std::uint32_t num_nodes = 0;
  std::span<const sample::Edits> node_edits{};  // [num_nodes], or empty where it has neither rules nor a grammar
};

struct StepPlan {
  std::vector<BlockOp> block_ops;
  std::vector<PlannedSequence> sequences;  // [S]
  std::vector<TokenId> tokens;             // [T] -1: see fed_by
  std::vector<std::uint32_t> positions;    // [T]
  std::vector<std::uint32_t> slots;        // [T] block id * P + offset in the block
  std::vector<BlockId> block_tables;       // all tables, one after the other
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
