#include "gpu/attention.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"

namespace quire::gpu {
namespace {

using backend::kGroupTokens;
using backend::KvType;
using backend::SequenceRows;

// Enough for 16 rows that see 128 Ki positions each, with 32 heads of 128 dimensions. A sequence that finds no room goes over its spans
// unit by unit itself: the same bits, but with fewer units at work.
constexpr std::size_t kMostPartBytes = std::size_t{128} << 20;

constexpr std::size_t kKindsOfLayers = 2;

// Of a row, span and head.
constexpr std::size_t part_bytes(std::uint32_t head_dim) { return (std::size_t{head_dim} + 2) * sizeof(float); }

// So that steps of many lengths have grids of the same sizes.
template <typename Unit>
void pad(std::vector<Unit>& units, const Unit& nobody) {
  if (!units.empty()) units.resize(std::bit_ceil(units.size()), nobody);
}
void pad(AttentionPlan& plan) {
  for (auto* units : {&plan.narrow, &plan.wide, &plan.narrow_voters, &plan.wide_voters}) pad(*units, AttentionUnit{});
  pad(plan.rows_in_parts, RowOfBatch::kNobody);
}

// The sequence's groups that have rows in this step.
void add_groups(const SequenceRows& sequence, std::vector<GroupOfStep>& out) {
  GroupOfStep group;
  group.first_row = sequence.first_row;
  group.first_position = sequence.first_position;
  group.end = sequence.first_position + sequence.num_rows;
  group.open_group = sequence.open_group;
  group.start = sequence.first_position / kGroupTokens * kGroupTokens;
  for (; group.start < group.end; group.start += kGroupTokens) out.push_back(group);
}

}  // namespace

Attention::Attention(Device& device, const AttentionLimits& limits) : device_(device), limits_(limits) {}

bool Attention::in_tiles(const KvLayout& layout) {
  const std::uint32_t most = layout.type == KvType::kInt4 ? AttendInt4::kMostDims : AttendBf16::kMostDims;
  return KvLayout::in_tiles(layout.type) && layout.width() <= most;
}

void Attention::reserve(const backend::KvShape& shape) {
  const std::size_t max_rows = limits_.max_rows;
  const std::size_t most_votes = std::size_t{limits_.max_table_entries} * (shape.block_tokens / kGroupTokens);
  grow(votes_, most_votes * sizeof(std::uint64_t), "votes");
  if (shape.type == KvType::kInt4) {
    stores_groups_ = true;
    grow(groups_, max_rows * sizeof(GroupOfStep), "groups of a step");  // each has a row
  }
  if (!KvLayout::in_tiles(shape.type)) return;
  const std::size_t most_heads = std::size_t{shape.num_kv_heads} * kMostHeadsOfGroup;
  grow(max_and_sum_, max_rows * most_heads * 2 * sizeof(float), "maxima and sums");
  // No row has more spans than the cache has; of heads there may be more, but then rows find less room.
  const std::size_t spans = std::size_t{shape.num_blocks} * shape.block_tokens / backend::kSpanTokens + 1;
  const std::size_t heads = std::size_t{shape.num_kv_heads} * kWideQueries;
  const std::size_t most =
      std::min<std::size_t>(max_rows, kMostRowsInParts) * spans * heads * part_bytes(shape.head_dim);
  grow(parts_, std::min(most, kMostPartBytes), "parts of attention");
  // A unit of one span has a part of each kv head at least.
  least_part_ = std::min(least_part_, shape.num_kv_heads * part_bytes(shape.head_dim));
  if (!placed_.empty() && parts_.bytes() / least_part_ <= most_units_) return;
  most_units_ = parts_.bytes() / least_part_;
  placed_.clear();
  for (std::size_t i = 0; i < kKindsOfLayers; ++i) placed_.push_back(make_placed());
}

// Numbers of units may be padded to the next power of two.
Attention::Placed Attention::make_placed() const {
  const std::size_t whole_units = std::size_t{limits_.max_rows} * pieces_of(kMostHeadsOfGroup, kNarrowQueries);
  const std::size_t unit_bytes = std::bit_ceil(most_units_ + whole_units) * sizeof(AttentionUnit);
  const std::size_t voter_bytes = std::bit_ceil(whole_units) * sizeof(AttentionUnit);
  Placed work;
  work.narrow = DeviceMemory(device_, unit_bytes, "units of attention");
  work.wide = DeviceMemory(device_, unit_bytes, "units of attention");
  work.narrow_voters = DeviceMemory(device_, voter_bytes, "units that vote");
  work.wide_voters = DeviceMemory(device_, voter_bytes, "units that vote");
  work.row_parts = DeviceMemory(device_, limits_.max_rows * sizeof(RowParts), "rows' parts");
  work.rows_in_parts =
      DeviceMemory(device_, std::bit_ceil(std::size_t{limits_.max_rows}) * sizeof(std::uint32_t), "rows in parts");
  return work;
}

void Attention::begin(const backend::Batch& batch, const BatchView& on_device, std::uint32_t bucket) {
  batch_ = batch;
  grid_rows_ = std::max(batch.num_rows(), bucket);
  pads_ = bucket != 0;
  on_device_ = on_device;
  num_placed_ = 0;
  const std::size_t vote_bytes = batch.num_votes * sizeof(std::uint64_t);
  CHECK_LE(vote_bytes, votes_.bytes());
  if (vote_bytes != 0) device_.fill(votes_.data(), std::byte{0}, vote_bytes);
  for (const SequenceRows& sequence : batch.sequences) CHECK(sequence.num_votes == 0 || sequence.num_nodes == 0);
  if (!stores_groups_) return;
  host_groups_.clear();
  for (const SequenceRows& sequence : batch.sequences) add_groups(sequence, host_groups_);
  send(groups_, std::span<const GroupOfStep>(host_groups_));
}

void Attention::rope_store(const AttentionView& spec, float* qkv, const DeviceCache& cache) {
  const KernelTable& kernels = device_.kernels();
  device_.start(kernels.rope_store, {grid_rows_, spec.num_heads + spec.num_kv_heads},
                {spec, on_device_.rows, qkv, cache.view()});
  if (cache.shape().type != KvType::kInt4) return;
  CHECK_LE(cache.view().layout.width(), StoreGroups::kMostDims);
  const Index grid{static_cast<unsigned>(host_groups_.size()), spec.num_kv_heads};
  const auto* groups = groups_.as<const GroupOfStep>();
  device_.start(kernels.set_aside, grid, {spec, groups, cache.view()});
  device_.start(kernels.store_groups, grid, {spec, on_device_.rows, groups, qkv, cache.view()});
}

void Attention::attend(const AttentionView& spec, const float* qkv, const DeviceCache& cache, float* out) {
  const KernelTable& kernels = device_.kernels();
  if (!in_tiles(cache.view().layout)) {
    CHECK_LE(spec.head_dim, Attend::kMostDims);
    device_.start(kernels.attend, {grid_rows_, spec.num_heads},
                  {spec, on_device_, qkv, cache.view(), out, votes_.as<std::uint64_t>()});
    return;
  }
  CHECK_LE(spec.num_heads, spec.num_kv_heads * kMostHeadsOfGroup);
  const std::size_t most_parts = parts_.bytes() / part_bytes(spec.head_dim);
  const Placed& work = placed({.heads_of_group = spec.num_heads / spec.num_kv_heads,
                               .window = spec.window,
                               .has_wide = cache.view().layout.width() <= AttendBf16Wide::kMostDims,
                               .most_parts = static_cast<std::uint32_t>(most_parts / spec.num_heads)});
  AttendTilesArgs args;
  args.spec = spec;
  args.batch = on_device_;
  args.row_parts = work.row_parts.as<const RowParts>();
  args.qkv = qkv;
  args.kv = cache.view();
  args.out = out;
  args.parts.values = parts_.as<float>();
  args.parts.max_and_sum = args.parts.values + most_parts * spec.head_dim;
  if (batch_.num_votes != 0) args.max_and_sum = max_and_sum_.as<float>();
  const auto count = [](const auto& units) { return static_cast<std::uint32_t>(units.size()); };
  run_units(args, cache.shape().type, {work.narrow, count(work.plan.narrow)}, {work.wide, count(work.plan.wide)});
  device_.start(
      kernels.merge_spans, {count(work.plan.rows_in_parts), spec.num_heads},
      {work.rows_in_parts.as<const std::uint32_t>(), args.row_parts, args.parts, spec.num_heads, spec.head_dim, out});
  if (batch_.num_votes == 0) return;
  args.votes = votes_.as<std::uint64_t>();
  run_units(args, cache.shape().type, {work.narrow_voters, count(work.plan.narrow_voters)},
            {work.wide_voters, count(work.plan.wide_voters)});
}

void Attention::read_votes(std::span<std::uint64_t> out) {
  CHECK_EQ(out.size(), batch_.num_votes);
  if (!out.empty()) device_.download(out.data(), votes_.data(), out.size_bytes());
}

template <typename Kernel>
void Attention::start(const Entry<Kernel>& kernel, AttendTilesArgs args, const Units& units) {
  args.units = units.memory.as<const AttentionUnit>();
  device_.start(kernel, {units.count, args.spec.num_kv_heads}, args);
}

void Attention::run_units(const AttendTilesArgs& args, KvType type, const Units& narrow, const Units& wide) {
  const KernelTable& kernels = device_.kernels();
  switch (type) {
    case KvType::kBF16:
      start(kernels.attend_bf16, args, narrow);
      return start(kernels.attend_bf16_wide, args, wide);
    case KvType::kFp8:
      start(kernels.attend_fp8, args, narrow);
      return start(kernels.attend_fp8_wide, args, wide);
    case KvType::kInt8:
      start(kernels.attend_int8, args, narrow);
      return start(kernels.attend_int8_wide, args, wide);
    default:
      CHECK(type == KvType::kInt4);
      start(kernels.attend_int4, args, narrow);
      return start(kernels.attend_int4_wide, args, wide);
  }
}

// Layers that are alike share one.
const Attention::Placed& Attention::placed(const AttentionShape& shape) {
  for (std::size_t i = 0; i < num_placed_; ++i) {
    if (placed_[i].shape == shape) return placed_[i];
  }
  if (num_placed_ == placed_.size()) placed_.push_back(make_placed());
  Placed& work = placed_[num_placed_++];
  work.shape = shape;
  work.plan = plan_attention(batch_, shape);
  if (pads_) pad(work.plan);
  send(work.narrow, std::span<const AttentionUnit>(work.plan.narrow));
  send(work.wide, std::span<const AttentionUnit>(work.plan.wide));
  send(work.narrow_voters, std::span<const AttentionUnit>(work.plan.narrow_voters));
  send(work.wide_voters, std::span<const AttentionUnit>(work.plan.wide_voters));
  send(work.row_parts, std::span<const RowParts>(work.plan.row_parts));
  send(work.rows_in_parts, std::span<const std::uint32_t>(work.plan.rows_in_parts));
  return work;
}

template <typename T>
void Attention::send(const DeviceMemory& to, std::span<const T> values) {
  CHECK_LE(values.size_bytes(), to.bytes());
  if (!values.empty()) device_.upload(to.data(), values.data(), values.size_bytes());
}

void Attention::grow(DeviceMemory& room, std::size_t bytes, const char* what) {
  if (bytes > room.bytes()) room = DeviceMemory(device_, bytes, what);
}

}  // namespace quire::gpu
