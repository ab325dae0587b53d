// Where the kernels find the K and V of one span, for one sequence and kv head in one layer: as they are stored, but
// for int4's own group of the rows at hand, which is put together in f32.
// Shape   by group of 16 positions, kept groups side by side: K's panel, V's first row.
// Owner   the cache, and the caller's room for the own group: valid until it is used for the next.
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
  // That group, the last one that its rows see; kSpanGroups: all are as stored.
  std::uint32_t own = kSpanGroups;
};

class KvReader {
 public:
  KvReader(const backend::Batch& batch, const backend::AttentionSpec& spec, const HostBuffer& qkv,
           const PagedCache& cache, const backend::SequenceRows& sequence, std::uint32_t kv_head);

  // Of the span's groups in `kept`, those that `seen` touches, a range of kept groups side by side.
  SpanGroups groups_of(std::uint32_t span, std::uint32_t kept, Range seen) const;
  // int4: the group of `position` as it was before storing takes its place among the span's: K [D][16], V [16][D padded
  // to 16], in `room` [own_group_floats(D)].
  void put_own_group(std::uint32_t position, float* room, SpanGroups& groups) const;
  static std::size_t own_group_floats(std::uint32_t head_dim);
  // A node of a draft that is no chain: from the root's group on the span's groups are put together of what its row sees, its
  // ancestors at their positions, in `room` [kSpanGroups groups].
  void put_path(std::uint32_t row, std::uint32_t span, std::byte* room, SpanGroups& groups) const;

 private:
  const std::byte* stored_group(std::uint32_t position) const;

  const backend::Batch& batch_;
  const backend::AttentionSpec& spec_;
  const HostBuffer& qkv_;
  const PagedCache& cache_;
  const backend::SequenceRows& sequence_;
  std::uint32_t kv_head_;
};

}  // namespace quire::cpu
