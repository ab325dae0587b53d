// Attention over the paged cache (equations: core/backend/step_ops.h).
// Shape   units of query rows (attention_units.h) are run by the team. In each span, the rows of a unit that read the
//         same K and V go over it together: always those of one sequence; those of several sequences as long as their
//         spans are in the same blocks.
// Order   spans of 256 positions in order, for every row by itself: units, tiles and threads change no bit. A row
//         weighs V up to its own position only, so that nothing it does not see can affect it, not even a NaN. int4: in
//         the span of its rows a tile has rows of one group of 16 positions only, because their own group is put
//         together in f32 from the residual group and the step's rows.
// Owner   CpuOps.
// Thread  engine; units run on the team.
// Source  PagedAttention (Kwon et al. 2023); online softmax (Milakov & Gimelshein 2018); fixed spans are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/attention_spec.h"
#include "core/backend/batch.h"
#include "core/cpu/attention_units.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/memory.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/span_groups.h"
#include "core/cpu/team/parallel_for.h"
#include "core/cpu/team/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

class Attention {
 public:
  Attention(const Kernels& kernels, Team& team, std::uint32_t max_rows);

  // Sizes the scratch for caches of this shape: called while starting, so that steps do not allocate.
  void reserve(const backend::KvShape& shape);

  // Called first in every step. The arrays that `batch` refers to outlive the step.
  void begin(const backend::Batch& batch);
  void attend(const backend::AttentionSpec& spec, const HostBuffer& qkv, const PagedCache& cache, HostBuffer& out);

  // Accumulated scores of the step, summed over layers and workers.
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
  float finish_scores(const Call& call, const QueryRow& row, std::uint32_t span, float* z, Range seen) const;
  void add_biases(const Call& call, const QueryRow& row, std::uint32_t span, float* z, Range seen) const;
  void weigh(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span, Range rows,
             const SpanGroups& groups) const;
  void add_sinks(const Call& call, const AttentionUnit& unit, const Scratch& scratch) const;
  void add_values(const Call& call, const Scratch& scratch, const SpanGroups& groups, Range rows, Range range) const;
  void accumulate(const Call& call, const AttentionUnit& unit, const Scratch& scratch, std::uint32_t span,
                  Range rows) const;

  const Kernels& kernels_;
  Team& team_;
  const std::uint32_t max_rows_;
  std::vector<AttentionUnits> units_;  // one per group of layers
  std::uint32_t max_head_ = 0;
  std::uint32_t max_latent_ = 0;  // the widest K of a layer with a latent
  std::vector<Memory> scratch_;   // one per worker
  std::uint32_t num_accumulated_scores_ = 0;
  // One per worker; they grow with the longest step that wants accumulated scores.
  std::vector<std::vector<std::uint64_t>> accumulated_scores_;
};

}  // namespace quire::cpu
