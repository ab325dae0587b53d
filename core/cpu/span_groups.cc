#include "core/cpu/span_groups.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"

namespace quire::cpu {
namespace {}  // namespace

KvReader::KvReader(const backend::Batch& batch, const backend::AttentionSpec& spec, const HostBuffer& qkv,
                   const PagedCache& cache, const backend::SequenceRows& sequence, std::uint32_t kv_head)
    : batch_(batch), spec_(spec), qkv_(qkv), cache_(cache), sequence_(sequence), kv_head_(kv_head) {}

SpanGroups KvReader::groups_of(std::uint32_t span, std::uint32_t kept, Range seen) const {
  const bool in_groups = cache_.shape().type == backend::KvType::kInt4;
  const std::uint32_t end = sequence_.first_position + sequence_.num_rows;
  SpanGroups groups{};
  std::uint32_t next = 0;
  for (std::uint32_t group = 0; group < kSpanGroups; ++group) {
    if ((kept >> group & 1u) == 0) continue;
    const std::uint32_t index = next++;
    const std::uint32_t position = span * kSpan + group * kLanes;
    if ((index + 1) * kLanes <= seen.first || index * kLanes >= seen.last) continue;
    if (in_groups && position + kLanes > end) continue;  // unfinished: not stored yet, and seen by its own rows only
    groups.k()[index] = stored_group(position);
    groups.v()[index] = stored_group(position) + cache_.codec(spec_.layer).v_offset();
  }
  for (std::uint32_t ahead = 0; ahead < kGroupsAhead; ++ahead) {
    const std::uint32_t position = (span + 1) * kSpan + ahead * kLanes;
    const bool is_next = sequence_.num_kept == 0 && position < sequence_.first_position;
    if (is_next) groups.lists[2 * kSpanGroups + ahead] = stored_group(position);
  }
  return groups;
}

void KvReader::put_panels(const Kernels& kernels, Range seen, std::byte* room, SpanGroups& groups) const {
  const GroupCodec& codec = cache_.codec(spec_.layer);
  for (std::uint32_t index = seen.first / kLanes; index * kLanes < seen.last; ++index) {
    if (groups.k()[index] == nullptr) continue;
    std::byte* const panel = room + index * codec.panel_bytes();
    codec.panel(kernels, static_cast<const std::byte*>(groups.k()[index]), panel);
    groups.k()[index] = panel;
  }
}

// Takes rows of earlier steps from the residual group as this step found it, the others from the step itself. Places
// behind the sequence's last row stay as they are: no row sees them.
void KvReader::put_own_group(std::uint32_t position, float* room, SpanGroups& groups) const {
  const std::uint32_t size = spec_.head_dim;
  const std::size_t width = padded_width(size);
  const std::uint32_t start = position / kLanes * kLanes;
  const std::uint32_t end = std::min(start + kLanes, sequence_.first_position + sequence_.num_rows);
  float* v_rows = room + kLanes * size;
  for (std::uint32_t p = start; p < end; ++p) {
    const std::uint32_t lane = p - start;
    const bool is_earlier = p < sequence_.first_position;
    const float* k =
        is_earlier ? cache_.found_row(sequence_.residual_group, spec_.layer, kv_head_, lane)
                   : qkv_.row(sequence_.first_row + (p - sequence_.first_position)) + spec_.q_width() + kv_head_ * size;
    const float* v = k + (is_earlier ? size : spec_.kv_width());
    for (std::uint32_t d = 0; d < size; ++d) room[d * kLanes + lane] = k[d];
    std::copy_n(v, size, v_rows + lane * width);
    std::fill(v_rows + lane * width + size, v_rows + (lane + 1) * width, 0.0f);
  }
  groups.own = position % kSpan / kLanes;
  groups.k()[groups.own] = room;
  groups.v()[groups.own] = v_rows;
}

// Groups from the root's on are copied as stored, including the rows of other nodes: these are overwritten by the
// ancestors' rows, or lie behind what the row sees.
void KvReader::put_path(std::uint32_t row, std::uint32_t span, std::byte* room, SpanGroups& groups) const {
  const GroupCodec& codec = cache_.codec(spec_.layer);
  const std::uint32_t root = sequence_.root_position();
  const std::uint32_t last = batch_.positions[row];
  const std::uint32_t begin = std::max(root / kLanes * kLanes, span * kSpan);
  const std::uint32_t end = std::min(last + 1, (span + 1) * kSpan);
  for (std::uint32_t start = begin; start < end; start += kLanes) {
    const std::uint32_t index = start % kSpan / kLanes;
    std::byte* const group = room + index * codec.bytes();
    std::memcpy(group, stored_group(start), codec.bytes());
    groups.k()[index] = group;
    groups.v()[index] = group + codec.v_offset();
  }
  const std::uint32_t node = row - (sequence_.first_row + sequence_.num_plain());
  std::uint64_t ancestors = batch_.ancestors[sequence_.first_node + node];
  for (std::uint32_t position = root + 1; ancestors != 0; ++position, ancestors &= ancestors - 1) {
    if (position < begin || position >= end) continue;
    const std::uint32_t slot = root + 1 + static_cast<std::uint32_t>(std::countr_zero(ancestors));
    codec.copy(stored_group(slot), slot % kLanes, room + position % kSpan / kLanes * codec.bytes(), position % kLanes);
  }
}

std::size_t KvReader::own_group_floats(std::uint32_t head_dim) { return kLanes * (head_dim + padded_width(head_dim)); }

const std::byte* KvReader::stored_group(std::uint32_t position) const {
  const backend::KvShape& shape = cache_.shape();
  const BlockId block = batch_.block_tables[sequence_.first_table + position / shape.block_tokens];
  CHECK_LT(block.value, shape.num_blocks);  // a row sees it, so it exists
  return cache_.group(spec_.layer, block, kv_head_, position % shape.block_tokens);
}

}  // namespace quire::cpu
