// Addresses of the K and V of one span, for one sequence and kv head in one layer, as the kernels take them: as stored,
// except int4's own group of the current rows, which is put together in f32.
// Shape   one address per group of 16 positions, kept groups side by side: K's panel, V's first row.
// Owner   the cache, and the caller's buffer for the own group: valid until the buffer is used for the next.
// Thread  any; pure.
// Fails   a group that a row sees but that does not exist is our bug: CHECK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/attention_spec.h"
#include "core/backend/batch.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/team/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

inline constexpr std::uint32_t kAllGroups = (1u << kSpanGroups) - 1;

struct SpanGroups {
  const void** k() { return lists; }
  const void* const* k() const { return lists; }
  const void** v() { return lists + kSpanGroups; }
  const void* const* v() const { return lists + kSpanGroups; }

  // K's groups, V's, and the next span's first K groups, in the order of reading. Null: no group.
  const void* lists[2 * kSpanGroups + kGroupsAhead];
  // Index of the own group, the last one that its rows see; kSpanGroups: all groups are as stored.
  std::uint32_t own = kSpanGroups;
};

// Floats of a V row in f32, with padding.
constexpr std::size_t padded_width(std::uint32_t head_dim) { return (head_dim + kLanes - 1) / kLanes * kLanes; }

class KvReader {
 public:
  KvReader(const backend::Batch& batch, const backend::AttentionSpec& spec, const HostBuffer& qkv,
           const PagedCache& cache, const backend::SequenceRows& sequence, std::uint32_t kv_head);

  // The span's groups in `kept` that overlap `seen`, a range of positions with kept groups side by side.
  SpanGroups groups_of(std::uint32_t span, std::uint32_t kept, Range seen) const;
  // With a latent: puts panels of the groups' K, of the positions in `seen`, in `room` [kSpanGroups panels].
  void put_panels(const Kernels& kernels, Range seen, std::byte* room, SpanGroups& groups) const;
  // int4: replaces the span's group of `position` by its values before storing: K [D][16], V [16][D padded to 16], in
  // `room` [own_group_floats(D)].
  void put_own_group(std::uint32_t position, float* room, SpanGroups& groups) const;
  static std::size_t own_group_floats(std::uint32_t head_dim);
  // For a node of a draft tree: from the root's group on, puts the span's groups together from what the node's row
  // sees, its ancestors at their positions, in `room` [kSpanGroups groups].
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
