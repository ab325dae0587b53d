// Attention over the paged cache (equations: core/backend/ops.h).
// Shape   the query heads of a group and consecutive rows of a sequence are one list of query rows, (row, head) with the
//         head running fastest: they read the same K and V. Units of at most kUnitRows of them go to the team.
// Order   spans of 256 positions in order, for every row alone: units, tiles and threads change nothing. A row weighs
//         V up to its own position only, so nothing that it does not see can touch it, not even a NaN.
//         Groups in types that the kernels do not read are widened to f32 first, once for a unit. int4: no tile spans two
//         groups, since a row's own is put together from the open group and the step's rows instead.
// Owner   CpuOps.
// Thread  engine; units run on the team.
// Source  PagedAttention (Kwon et al. 2023); online softmax (Milakov & Gimelshein 2018); fixed spans are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/memory.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/span_groups.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

class Attention {
 public:
  Attention(const Kernels& kernels, Team& team, std::uint32_t max_rows);

  // Sizes the scratch for caches of this shape: while starting, so that steps do not allocate.
  void reserve(const backend::KvShape& shape);

  void attend(const backend::Batch& batch, const backend::AttentionSpec& spec, const HostBuffer& qkv,
              const PagedCache& cache, HostBuffer& out);

  // Votes of a step: begun with none; added up over layers and workers.
  void begin_votes(std::uint32_t num_votes);
  void read_votes(std::span<std::uint64_t> out) const;

 private:
  enum class Pass { kWeigh, kVote };
  struct Call;
  struct Unit;
  struct Scratch;

  Scratch scratch_of(std::uint32_t worker, const Call& call);
  Unit unit_of(const Call& call, std::uint32_t index) const;
  void attend_unit(const Call& call, const Unit& unit, const Scratch& scratch) const;
  void attend_span(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span, Pass pass) const;
  std::uint32_t tile_end(const Call& call, const Unit& unit, std::uint32_t span, std::uint32_t i) const;
  void score(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span, std::uint32_t first,
             std::uint32_t last, const SpanGroups& groups) const;
  void weigh(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span, std::uint32_t first,
             std::uint32_t last, const SpanGroups& groups) const;
  void vote(const Call& call, const Unit& unit, const Scratch& scratch, std::uint32_t span, std::uint32_t first,
            std::uint32_t last) const;

  const Kernels& kernels_;
  Team& team_;
  std::uint32_t max_head_ = 0;
  std::uint32_t max_wide_head_ = 0;        // of caches whose groups are widened
  std::vector<std::uint32_t> first_unit_;  // [S + 1] units before each sequence, of one kv head
  std::vector<Memory> scratch_;            // one per worker
  std::vector<Memory> wide_;               // one per worker: a span's groups in f32
  std::uint32_t num_votes_ = 0;
  std::vector<std::vector<std::uint64_t>> votes_;  // one per worker; they grow with the longest step that wants votes
};

}  // namespace quire::cpu
