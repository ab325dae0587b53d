// Attention over the paged cache (equations: core/backend/ops.h).
// Shape   units of query rows (attention_units.h) go to the team. Of a unit, the rows that read the same K and V in a
//         span go over it together: those of one sequence always, those of several while these lie in the same blocks.
// Order   spans of 256 positions in order, for every row alone: units, tiles and threads change nothing. A row weighs
//         V up to its own position only, so nothing that it does not see can touch it, not even a NaN.
//         int4: no tile spans two groups, since a row's own is put together in f32 from the open group and the step's
//         rows instead.
// Owner   CpuOps.
// Thread  engine; units run on the team.
// Source  PagedAttention (Kwon et al. 2023); online softmax (Milakov & Gimelshein 2018); fixed spans are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/attention_units.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/memory.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/share_out.h"
#include "core/cpu/span_groups.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

class Attention {
 public:
  Attention(const Kernels& kernels, Team& team, std::uint32_t max_rows);

  // Sizes the scratch for caches of this shape: while starting, so that steps do not allocate.
  void reserve(const backend::KvShape& shape);

  // Of every step, first. What `batch` views must outlive the step.
  void begin(const backend::Batch& batch);
  void attend(const backend::AttentionSpec& spec, const HostBuffer& qkv, const PagedCache& cache, HostBuffer& out);

  // Accumulated scores of a step, added up over layers and workers.
  void read_accumulated_scores(std::span<std::uint64_t> out) const;

 private:
  enum class Pass { kWeigh, kAccumulate };
  struct Call;
  struct Scratch;

  Scratch scratch_of(std::uint32_t worker, const Call& call);
  void attend_unit(const Call& call, const AttentionUnit& unit, const Scratch& scratch) const;
  void attend_spans(const Call& call, const AttentionUnit& unit, const Scratch& scratch, Pass pass) const;
  void attend_span(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span, Range rows,
                   Pass pass) const;
  void attend_paths(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span, Range rows,
                    Pass pass) const;
  std::uint32_t tile_end(const Call& call, const AttentionUnit& unit, std::uint32_t span, Range rows) const;
  void score(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span, Range rows,
             const SpanGroups& groups) const;
  void weigh(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span, Range rows,
             const SpanGroups& groups) const;
  void add_values(const Call& call, const Scratch& scratch, const SpanGroups& groups, Range rows, Range range) const;
  void accumulate(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                  Range rows) const;

  const Kernels& kernels_;
  Team& team_;
  AttentionUnits units_;
  std::uint32_t max_head_ = 0;
  std::vector<Memory> scratch_;  // one per worker
  std::uint32_t num_accumulated_scores_ = 0;
  std::vector<std::vector<std::uint64_t>>
      accumulated_scores_;  // one per worker; they grow with the longest step that wants accumulated scores
};

}  // namespace quire::cpu
