// State that the threads of a unit of attention_tiles.h share: its columns, the current span, and where its K and V
// are.
// Shape   kColumns columns, each a query or empty; the 16 groups of 16 positions of a span. Masks have a bit per group.
// Thread  all predicates but those of a column are the same in all threads of the block.
// Source  ours.
#pragma once

#include "core/base/kv_constants.h"
#include "gpu/device/kv_fragment.h"
#include "gpu/device/softmax.h"
#include "gpu/device/stream.h"
#include "gpu/kernels/attention_units.h"
#include "gpu/kernels/batch_rows.h"

namespace quire::gpu {

struct AttendTilesArgs {
  AttentionView spec;
  BatchView batch;
  const AttentionUnit* units = nullptr;
  const RowParts* row_parts = nullptr;  // [T]
  const float* qkv = nullptr;
  KvView kv;
  float* out = nullptr;
  PartsView parts;
  float* max_and_sum = nullptr;  // [T, H]: for rows whose scores are accumulated
  // Not null: second pass, in which the units' rows are done and their scores are accumulated.
  std::uint64_t* accumulated_scores = nullptr;
};

// State of a unit's columns.
template <unsigned kColumnTiles>
struct TileColumns {
  static constexpr unsigned kColumns = kColumnTiles * kTileRows;

  std::uint32_t row[kColumns];  // row of the batch, and query head
  std::uint32_t head[kColumns];
  std::uint32_t position[kColumns];  // of the column's row
  std::uint32_t lowest[kColumns];    // lowest position that it sees; above its position: the column is empty
  float max[kColumns];               // over the spans so far
  float sum[kColumns];               // 0: no span yet (afterwards it is at least 1, or NaN)
  float before[kColumns];            // factors of the merge: of the earlier spans' sums, and of the current span's
  float now[kColumns];
  std::uint32_t step[kColumns];
  float* out[kColumns];  // set at the end
};

// Two adjacent floats.
struct alignas(8) FloatPair {
  float first = 0.0f;
  float second = 0.0f;
};

// Shared memory of a unit. q and weights are in the order of the tensor cores' lanes, two tiles of 16 inputs at once:
// 16 bytes.
template <unsigned kColumnTiles, std::uint32_t kMostDims>
struct TileWork : TileColumns<kColumnTiles> {
  static constexpr unsigned kColumns = TileColumns<kColumnTiles>::kColumns;
  static constexpr unsigned kSpan = kSpanTokens;
  static constexpr unsigned kTwoTiles = 2 * kTileInputs;

 private:
  // The stride spreads what the lanes of a warp access at once over the banks.
  static constexpr unsigned kScoreStride = kSpan + 8;

 public:
  Words4 q[kColumnTiles][kMostDims / kTwoTiles][kWarp];
  alignas(16) float z[kColumns][kScoreStride];        // scores; later each row's first half has its weights in bf16
  const std::byte* groups[kSpan / KvLayout::kGroup];  // address of each group, unless it is gathered
  std::uint32_t slots[kSpan];                         // slots of gathered groups; kUnseen: no row sees the position
  alignas(8) float k_scales[kSpan];                   // int8
  alignas(8) float v_scales[kSpan];

  // A pair of numbers, the first of an even input.
  QUIRE_DEVICE std::uint32_t& query_pair(unsigned column, std::uint32_t d) {
    return q[column / kTileRows][d / kTwoTiles][column % kTileRows * 4 + d % kTileRows / 2].words[word_of(d)];
  }
  QUIRE_DEVICE std::uint32_t& weight_pair(unsigned column, unsigned j) {
    return weights(column, j / kTwoTiles, j % kTileRows / 2).words[word_of(j)];
  }
  // Weights of 32 positions for the lane that is number `place` of the column's four.
  QUIRE_DEVICE Words4& weights(unsigned column, unsigned two_groups, unsigned place) {
    return reinterpret_cast<Words4*>(z[column])[two_groups * 4 + place];
  }
  QUIRE_DEVICE float& score(unsigned column, unsigned j) { return z[column][j]; }
  QUIRE_DEVICE FloatPair& score_pair(unsigned column, unsigned j) {
    return *reinterpret_cast<FloatPair*>(&z[column][j]);
  }

 private:
  static constexpr unsigned word_of(unsigned input) { return input % kTwoTiles / 8; }
};

template <backend::KvType kKvType, unsigned kNumColumnTiles, typename SharedWork>
struct TileCall {
  using Work = SharedWork;
  static constexpr backend::KvType kType = kKvType;
  static constexpr unsigned kColumnTiles = kNumColumnTiles;
  static constexpr unsigned kColumns = kColumnTiles * kTileRows;
  static constexpr unsigned kSpan = kSpanTokens;
  static constexpr unsigned kGroups = kSpan / KvLayout::kGroup;
  static constexpr std::uint32_t kAllGroups = (1u << kGroups) - 1;

  const AttendTilesArgs& a;
  const AttentionUnit& unit;
  const RowOfBatch& row;  // one of the unit's rows, for what all of them share
  Work& work;
  std::uint32_t kv_head;
  // The current span, and masks of its groups. groups: some row sees something of it. mixed: not every row sees all of
  // it. in_one: it is seen, and its numbers are stored as the tensor cores take them; all others are put together
  // first.
  std::uint32_t span = 0;
  std::uint32_t groups = 0;
  std::uint32_t mixed = 0;
  std::uint32_t in_one = 0;

  QUIRE_DEVICE void go_to(std::uint32_t which) {
    span = which;
    groups = groups_seen();
    mixed = ending_from(unit.min_position + 1) | (kAllGroups ^ ending_from(unit.max_lowest + KvLayout::kGroup - 1)) |
            own_groups();
    in_one = groups & stored_groups() & ~gathered_groups();
  }
  // Groups of the span of which some row sees something.
  QUIRE_DEVICE std::uint32_t groups_seen() const {
    const std::uint32_t first_position = span * kSpan;
    if (unit.min_lowest >= first_position + kSpan || unit.max_position < first_position) return 0;
    const std::uint32_t first =
        unit.min_lowest < first_position ? 0 : (unit.min_lowest - first_position) / KvLayout::kGroup;
    const std::uint32_t last = unit.max_position >= first_position + kSpan
                                   ? kGroups - 1
                                   : (unit.max_position - first_position) / KvLayout::kGroup;
    return groups_kept(a.batch, row, span) & kAllGroups << first & kAllGroups >> (kGroups - 1 - last);
  }
  QUIRE_DEVICE std::uint32_t start(unsigned group) const { return span * kSpan + group * KvLayout::kGroup; }
  QUIRE_DEVICE const std::byte* stored(unsigned group) const { return work.groups[group]; }
  // Bytes of a group's codes of K, or of V.
  QUIRE_DEVICE std::uint32_t code_bytes() const {
    return KvLayout::kGroup * a.kv.layout.width() * KvLayout::bits_of(kType) / 8;
  }
  QUIRE_DEVICE bool lies_in_one(unsigned group) const { return (in_one >> group & 1u) != 0; }
  // Groups that are put together position by position (draft trees: ancestors are in slots of their own).
  QUIRE_DEVICE std::uint32_t gathered_groups() const {
    return kType != backend::KvType::kInt4 && row.ancestors != 0 ? ending_from(row.root_position + 1) : 0;
  }
  // int4: groups that are some row's own, while other rows see them as stored.
  QUIRE_DEVICE std::uint32_t own_groups() const {
    return kType == backend::KvType::kInt4 ? ending_from(unit.min_position) : 0;
  }
  QUIRE_DEVICE std::uint32_t stored_groups() const {
    return kType == backend::KvType::kInt4 ? kAllGroups ^ ending_from(unit.max_position) : kAllGroups;
  }
  QUIRE_DEVICE bool gathers(unsigned group) const { return (gathered_groups() >> group & 1u) != 0; }
  QUIRE_DEVICE bool is_own(unsigned group) const { return (own_groups() >> group & 1u) != 0; }
  QUIRE_DEVICE bool is_stored(unsigned group) const { return (stored_groups() >> group & 1u) != 0; }
  QUIRE_DEVICE bool is_own_of(unsigned group, unsigned column) const {
    return work.position[column] / KvLayout::kGroup == start(group) / KvLayout::kGroup;
  }
  QUIRE_DEVICE bool is_mixed(unsigned group) const { return (mixed >> group & 1u) != 0; }
  QUIRE_DEVICE bool sees(unsigned column, unsigned group, unsigned in_group) const {
    const std::uint32_t position = start(group) + in_group;
    return (groups >> group & 1u) != 0 && position >= work.lowest[column] && position <= work.position[column];
  }

  QUIRE_DEVICE bool sees_all(unsigned column) const {
    return groups == kAllGroups && work.lowest[column] <= start(0) && work.position[column] >= start(kGroups) - 1;
  }

  struct Query {
    std::uint32_t row;
    std::uint32_t head;
  };
  QUIRE_DEVICE Query query_of(unsigned column) const {
    const std::uint32_t heads = a.spec.heads_of_group();
    const std::uint32_t query = unit.first_head + column;
    return {unit.first_row + query / heads, kv_head * heads + query % heads};
  }

  // A lane's words of a tile that is not stored as the tensor cores take it: gathered, or a row's own group.
  QUIRE_DEVICE KvFragment built(unsigned group, std::uint32_t tile, bool own, bool of_k) const {
    KvFragment out;
    const unsigned lane = thread() % kWarp;
    QUIRE_UNROLLED for (unsigned word = 0; word < 4; ++word) {
      const unsigned output = lane / 4 + word % 2 * 8;
      QUIRE_ROLLED for (unsigned half = 0; half < 2; ++half) {
        const unsigned input = lane % 4 * 2 + half + word / 2 * 8;
        const unsigned in_group = of_k ? output : input;
        const std::uint32_t d = tile * kTileInputs + (of_k ? input : output);
        const float x = own ? own_number(group, in_group, d, of_k) : gathered_number(group, in_group, d, of_k);
        out.words[word] |= std::uint32_t{bf16_of_f32(x)} << 16 * half;
      }
    }
    return out;
  }

 private:
  // Groups of the span whose last position is this one, or behind it.
  QUIRE_DEVICE std::uint32_t ending_from(std::uint32_t position) const {
    if (position <= span * kSpan) return kAllGroups;
    const std::uint32_t before = (position - span * kSpan) / KvLayout::kGroup;
    return before < kGroups ? kAllGroups << before & kAllGroups : 0;
  }
  QUIRE_DEVICE float own_number(unsigned group, unsigned in_group, std::uint32_t d, bool of_k) const {
    const std::uint32_t position = start(group) + in_group;
    if (position > unit.max_position || d >= a.spec.head_dim) return 0.0f;
    const OwnRow found = own_row(a.spec, a.kv, a.qkv, row, kv_head, position);
    return of_k ? found.k[d] : found.v[d];
  }
  QUIRE_DEVICE float gathered_number(unsigned group, unsigned in_group, std::uint32_t d, bool of_k) const {
    const std::uint32_t slot = work.slots[group * KvLayout::kGroup + in_group];
    if (slot == kUnseen) return 0.0f;
    const KvLayout& layout = a.kv.layout;
    const std::byte* codes = a.kv.group(kv_head, slot);
    if (of_k) return kv_code_at(kType, codes, layout.k_place(slot, d));
    return kv_code_at(kType, codes + layout.code_bytes(), layout.v_place(slot, d));
  }
};

}  // namespace quire::gpu
