// Units of a step's attention: query rows that go over K and V together, of one sequence, or of several that begin with
// the same blocks.
// Shape   the query rows of a sequence and kv head are pairs (row, head), head fastest, that read the same K and V.
//         Sequences are sorted by their block tables, so that those that begin with the same blocks are adjacent.
//         Adjacent sequences that share a span are a run, whose query rows are cut into units.
// Shared  two sequences share a span if it is in the same blocks for both and before every row of both: all rows see
//         all of it. A sequence with dropped groups or accumulated scores shares nothing; in a layer with a window no
//         sequence does.
// Owner   Attention. Sized while starting: steps do not allocate.
// Thread  engine; unit() any.
// Source  ours. Reading a shared prefix once: Hydragen (Juravsky et al. 2024); with fixed spans its merge is not
//         needed.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/backend/attention_spec.h"
#include "core/backend/batch.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/team/share_out.h"

namespace quire::cpu {

inline constexpr std::uint32_t kUnitRows = 48;  // at most: a span of K and V stays in L2 for all of them

struct QueryRow {
  const backend::SequenceRows* sequence;
  std::uint32_t row;  // of the batch
  std::uint32_t head;
  std::uint32_t position;
  std::uint32_t num_shared;  // first spans whose K and V the unit's previous query row reads, too
};

struct AttentionUnit {
  std::uint32_t kv_head = 0;
  std::uint32_t num_rows = 0;
  QueryRow rows[kUnitRows];

  // End of the query rows, from `first` on, that read the same K and V in this span.
  std::uint32_t end_of_group(std::uint32_t first, std::uint32_t span) const;
};

class AttentionUnits {
 public:
  explicit AttentionUnits(std::uint32_t max_sequences);

  // Called once per step: finds sequences that begin with the same blocks. The arrays of `batch` outlive the step.
  void begin(const backend::Batch& batch);
  // Called for every layer. Units are whole tiles of rows, several per worker if there are enough rows; those of one kv
  // head with less than a tile for each worker are one for each worker.
  void cut(const backend::AttentionSpec& spec, std::uint32_t block_tokens, std::uint32_t tile_rows,
           std::uint32_t num_workers);

  const backend::Batch& batch() const { return batch_; }
  std::uint32_t count() const { return num_of_head_ * num_kv_heads_; }
  // The units of one kv head come before those of the next.
  AttentionUnit unit(std::uint32_t index) const;

 private:
  struct Place {  // a sequence in the sorted order
    std::uint32_t sequence;
    std::uint32_t num_common;   // first blocks that it shares with the sequence before
    std::uint32_t num_shared;   // first spans that it shares, in the current layer
    std::uint32_t first_query;  // query rows of one kv head before it
  };
  struct Run {
    std::uint32_t first_unit;
    std::uint32_t first_query;
    std::uint32_t last_query;
  };

  const backend::SequenceRows& sequence_of(const Place& place) const { return batch_.sequences[place.sequence]; }

  backend::Batch batch_;
  std::vector<Place> order_;
  std::vector<Run> runs_;
  std::uint32_t heads_of_group_ = 0;  // query heads of one kv head
  std::uint32_t num_kv_heads_ = 0;
  std::uint32_t unit_rows_ = 0;
  std::uint32_t num_of_head_ = 0;  // units of one kv head
};

}  // namespace quire::cpu
