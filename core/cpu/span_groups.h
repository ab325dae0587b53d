// Where the kernels find the K and V of one span, for one sequence and kv head in one layer: as they are stored, or widened
// to f32 into scratch.
// Shape   by group of 16 positions, kept groups side by side: K's panel, V's first row.
// Owner   the caller's scratch; valid until it is used for the next span.
// Thread  any; pure.
// Fails   a group that a row sees and that is not there is our bug: CHECK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

inline constexpr std::uint32_t kAllGroups = (1u << kSpanGroups) - 1;

struct SpanGroups {
  const void** k() { return lists; }
  const void* const* k() const { return lists; }
  const void** v() { return lists + kSpanGroups; }
  const void* const* v() const { return lists + kSpanGroups; }

  // K's, V's, and the next span's first K: in the order that they are read in. Null where there is none.
  const void* lists[2 * kSpanGroups + kGroupsAhead];
};

class KvReader {
 public:
  // `wide`: [wide_floats(D)], null for types that the kernels read as stored.
  KvReader(const backend::Batch& batch, const backend::AttentionSpec& spec, const HostBuffer& qkv,
           const PagedCache& cache, const backend::SequenceRows& sequence, std::uint32_t kv_head, float* wide);

  static std::size_t wide_floats(std::uint32_t head_dim);

  // Of the span's groups in `kept`, those that `seen` touches, a range of kept groups side by side.
  SpanGroups groups_of(std::uint32_t span, std::uint32_t kept, Range seen) const;
  // int4: the group of `position` as it was before storing takes its place among the span's.
  void put_own_group(std::uint32_t position, SpanGroups& groups) const;

 private:
  const std::byte* stored_group(std::uint32_t position) const;
  float* wide_group(std::uint32_t index) const;
  void set_wide(SpanGroups& groups, std::uint32_t index, const float* wide) const;

  const backend::Batch& batch_;
  const backend::AttentionSpec& spec_;
  const HostBuffer& qkv_;
  const PagedCache& cache_;
  const backend::SequenceRows& sequence_;
  std::uint32_t kv_head_;
  float* wide_;
};

}  // namespace quire::cpu
