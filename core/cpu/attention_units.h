// A step's attention cut into units: query rows that go over K and V together, of one sequence, or of several that
// begin with the same blocks.
// Shape   the query heads of a kv head and the rows of a sequence are one list of query rows, (row, head) with the head
//         running fastest: they read the same K and V. Sequences stand in the order of their block tables, so that
//         those that begin alike are neighbours; neighbours that share a span make a run, whose query rows are cut into
//         units.
// Shared  a span that lies in the same blocks for both, before every row of both: all of them see all of it. A sequence
//         that has lost groups or wants accumulated scores shares nothing, and nobody does in a layer with a window.
// Owner   Attention. Sized while starting: steps do not allocate.
// Thread  engine; unit() any.
// Source  ours. That a shared prefix be read once: Hydragen (Juravsky et al. 2024); fixed spans spare us its merge.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/share_out.h"

namespace quire::cpu {

inline constexpr std::uint32_t kUnitRows = 48;  // at most: a span of K and V stays in the second cache for all of them

struct QueryRow {
  const backend::SequenceRows* sequence;
  std::uint32_t row;  // of the batch
  std::uint32_t head;
  std::uint32_t position;
  std::uint32_t num_shared;  // spans, from the first, whose K and V are those of the query row before in the unit
};

struct AttentionUnit {
  std::uint32_t kv_head = 0;
  std::uint32_t num_rows = 0;
  QueryRow rows[kUnitRows];

  // From query row `first` on, those that read the same K and V in this span: where they end.
  std::uint32_t end_of_group(std::uint32_t first, std::uint32_t span) const;
};

class AttentionUnits {
 public:
  explicit AttentionUnits(std::uint32_t max_sequences);

  // Of a step, once: finds who begins with the same blocks. What `batch` views must outlive the step.
  void begin(const backend::Batch& batch);
  // Of a layer. Units are whole tiles of rows, and several for each worker where there is enough for that.
  void cut(const backend::AttentionSpec& spec, std::uint32_t block_tokens, std::uint32_t tile_rows,
           std::uint32_t num_workers);

  const backend::Batch& batch() const { return batch_; }
  std::uint32_t count() const { return num_of_head_ * num_kv_heads_; }
  // Units of one kv head after another.
  AttentionUnit unit(std::uint32_t index) const;

 private:
  struct Place {  // of a sequence in the order
    std::uint32_t sequence;
    std::uint32_t num_common;   // blocks that it begins with as the one before does
    std::uint32_t num_shared;   // spans, in the layer at hand
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
