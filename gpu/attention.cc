#include "gpu/attention.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::gpu {
namespace {

using backend::KvType;
using backend::SequenceRows;

// Enough for 15 rows that see 128 Ki positions each, with 32 heads of 128 dimensions. A sequence that does not fit is
// not split: its units go over all of their spans, with the same bits but fewer units at work.
constexpr std::size_t kMostPartBytes = std::size_t{128} << 20;

constexpr std::size_t kKindsOfLayers = 2;

// Bytes of a part: one row, span and head.
constexpr std::size_t part_bytes(std::uint32_t head_dim) { return (std::size_t{head_dim} + 2) * sizeof(float); }

// Pads to a power of two, so that steps of many lengths have the same grid sizes.
template <typename Unit>
void pad(std::vector<Unit>& units, const Unit& nobody) {
  if (!units.empty()) units.resize(std::bit_ceil(units.size()), nobody);
}
void pad(AttentionPlan& plan) {
  for (auto* units : {&plan.narrow, &plan.wide, &plan.narrow_accumulating, &plan.wide_accumulating})
    pad(*units, AttentionUnit{});
  pad(plan.rows_in_parts, RowOfBatch::kNobody);
}

// Writes the sequence's groups that have rows in this step from `out` on; returns their end.
GroupOfStep* put_groups(const SequenceRows& sequence, GroupOfStep* out) {
  GroupOfStep group;
  group.first_row = sequence.first_row;
  group.first_position = sequence.first_position;
  group.end = sequence.first_position + sequence.num_rows;
  group.residual_group = sequence.residual_group;
  group.start = sequence.first_position / kGroupTokens * kGroupTokens;
  for (; group.start < group.end; group.start += kGroupTokens) *out++ = group;
  return out;
}

}  // namespace

Attention::Attention(Device& device, const AttentionLimits& limits) : device_(device), limits_(limits) {}

bool Attention::in_tiles(const KvLayout& layout) {
  const std::uint32_t most = layout.type == KvType::kInt4 ? AttendInt4::kMostDims : AttendBf16::kMostDims;
  return KvLayout::in_tiles(layout.type) && layout.width() <= most;
}

void Attention::reserve(const backend::KvShape& shape) {
  const std::size_t max_rows = limits_.max_rows;
  const std::size_t most_accumulated_scores =
      std::size_t{limits_.max_table_entries} * (shape.block_tokens / kGroupTokens);
  grow(accumulated_scores_, most_accumulated_scores * sizeof(std::uint64_t), "accumulated_scores");
  if (shape.type == KvType::kInt4) {
    stores_groups_ = true;
    if (!groups_) groups_.emplace(device_, max_rows * sizeof(GroupOfStep), limits_.depth, "groups of a step");
  }
  if (!KvLayout::in_tiles(shape.type)) return;
  const std::size_t most_heads = std::size_t{shape.most_kv_heads()} * kMostHeadsOfGroup;
  grow(max_and_sum_, max_rows * most_heads * 2 * sizeof(float), "maxima and sums");
  // No row has more spans than the cache. There may be more heads than assumed here; then fewer rows fit.
  const std::size_t spans = std::size_t{shape.num_blocks} * shape.block_tokens / kSpanTokens + 1;
  const std::size_t heads_bytes = shape.most(
      [](const backend::KvLayer& layer) { return layer.num_kv_heads * kWideQueries * part_bytes(layer.head_dim); });
  const std::size_t most = std::min<std::size_t>(max_rows, kMostRowsInParts) * spans * heads_bytes;
  grow(parts_, std::min(most, kMostPartBytes), "parts of attention");
  // A unit of one span has at least one part per kv head.
  for (const backend::KvLayer& layer : shape.layers) {
    least_part_ = std::min(least_part_, layer.num_kv_heads * part_bytes(layer.head_dim));
  }
  if (!placed_.empty() && parts_.bytes() / least_part_ <= most_units_) return;
  most_units_ = parts_.bytes() / least_part_;
  placed_.clear();
  for (std::size_t i = 0; i < kKindsOfLayers; ++i) placed_.push_back(make_placed());
}

// Lists of units may be padded to the next power of two.
Attention::Placed Attention::make_placed() const {
  const std::size_t whole_units = std::size_t{limits_.max_rows} * pieces_of(kMostHeadsOfGroup, kNarrowQueries);
  const std::size_t unit_bytes = std::bit_ceil(most_units_ + whole_units) * sizeof(AttentionUnit);
  const std::size_t accumulating_bytes = std::bit_ceil(whole_units) * sizeof(AttentionUnit);
  const std::size_t row_bytes =
      limits_.max_rows * sizeof(RowParts) + std::bit_ceil(std::size_t{limits_.max_rows}) * sizeof(std::uint32_t);
  constexpr std::size_t kParts = 6;
  const std::size_t most = 2 * unit_bytes + 2 * accumulating_bytes + row_bytes + kParts * kUploadBoundary;
  return {.shape = {}, .upload = StepUpload(device_, most, limits_.depth, "units of attention")};
}

void Attention::begin(const backend::Batch& batch, const BatchView& on_device, std::uint32_t bucket) {
  batch_ = batch;
  grid_rows_ = std::max(batch.num_rows(), bucket);
  pads_ = bucket != 0;
  on_device_ = on_device;
  num_placed_ = 0;
  const std::size_t accumulated_score_bytes = batch.num_accumulated_scores * sizeof(std::uint64_t);
  CHECK_LE(accumulated_score_bytes, accumulated_scores_.bytes());
  if (accumulated_score_bytes != 0) device_.fill(accumulated_scores_.data(), std::byte{0}, accumulated_score_bytes);
  for (const SequenceRows& sequence : batch.sequences)
    CHECK(sequence.num_accumulated_scores == 0 || sequence.num_nodes == 0);
  if (!stores_groups_) return;
  auto* const groups = reinterpret_cast<GroupOfStep*>(groups_->begin());
  GroupOfStep* end = groups;
  for (const SequenceRows& sequence : batch.sequences) end = put_groups(sequence, end);
  num_groups_ = static_cast<std::uint32_t>(end - groups);
  groups_->send(num_groups_ * sizeof(GroupOfStep));
}

// The batch as the layer's group sees it.
BatchView Attention::batch_of(const DeviceCache& cache, std::uint32_t layer) const {
  BatchView batch = on_device_;
  batch.rows += std::size_t{cache.shape().layers[layer].group} * grid_rows_;
  return batch;
}

void Attention::rope_store(const AttentionView& spec, std::uint32_t layer, float* qkv, const DeviceCache& cache) {
  const KernelTable& kernels = device_.kernels();
  const RowOfBatch* const rows = batch_of(cache, layer).rows;
  const KvView& kv = cache.view(layer);
  device_.start(kernels.rope_store, {grid_rows_, spec.num_heads + (spec.stores ? spec.num_kv_heads : 0)},
                {spec, rows, qkv, kv});
  if (cache.shape().type != KvType::kInt4) return;
  CHECK_LE(kv.layout.width(), StoreGroups::kMostDims);
  const Index grid{num_groups_, spec.num_kv_heads};
  const auto* groups = reinterpret_cast<const GroupOfStep*>(groups_->on_device());
  device_.start(kernels.set_aside, grid, {spec, groups, kv});
  device_.start(kernels.store_groups, grid, {spec, rows, groups, qkv, kv});
}

void Attention::attend(const AttentionView& spec, std::uint32_t layer, const float* qkv, const DeviceCache& cache,
                       float* out) {
  const KernelTable& kernels = device_.kernels();
  const BatchView batch = batch_of(cache, layer);
  const KvView& kv = cache.view(layer);
  if (!in_tiles(kv.layout)) {
    CHECK_LE(spec.head_dim, Attend::kMostDims);
    device_.start(kernels.attend, {grid_rows_, spec.num_heads},
                  {spec, batch, qkv, kv, out, accumulated_scores_.as<std::uint64_t>()});
    return;
  }
  CHECK_LE(spec.num_heads, spec.num_kv_heads * kMostHeadsOfGroup);
  const std::size_t most_parts = parts_.bytes() / part_bytes(spec.head_dim);
  const Placed& work = placed({.heads_of_group = spec.num_heads / spec.num_kv_heads,
                               .window = spec.window,
                               .has_wide = kv.layout.width() <= AttendBf16Wide::kMostDims,
                               .most_parts = static_cast<std::uint32_t>(most_parts / spec.num_heads)});
  AttendTilesArgs args;
  args.spec = spec;
  args.batch = batch;
  args.row_parts = work.row_parts.first;
  args.qkv = qkv;
  args.kv = kv;
  args.out = out;
  args.parts.values = parts_.as<float>();
  args.parts.max_and_sum = args.parts.values + most_parts * spec.head_dim;
  if (batch_.num_accumulated_scores != 0) args.max_and_sum = max_and_sum_.as<float>();
  run_units(args, cache.shape().type, work.narrow, work.wide);
  device_.start(kernels.merge_spans, {work.rows_in_parts.count, spec.num_heads},
                {work.rows_in_parts.first, args.row_parts, args.parts, spec.num_heads, spec.head_dim, spec.sinks, out});
  if (batch_.num_accumulated_scores == 0) return;
  args.accumulated_scores = accumulated_scores_.as<std::uint64_t>();
  run_units(args, cache.shape().type, work.narrow_accumulating, work.wide_accumulating);
}

void Attention::read_accumulated_scores(std::span<std::uint64_t> out) {
  CHECK_EQ(out.size(), batch_.num_accumulated_scores);
  if (!out.empty()) device_.download(out.data(), accumulated_scores_.data(), out.size_bytes());
}

template <typename Kernel>
void Attention::start(const Entry<Kernel>& kernel, AttendTilesArgs args, const Units& units) {
  args.units = units.first;
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

// Layers of the same kind share a plan.
const Attention::Placed& Attention::placed(const AttentionShape& shape) {
  for (std::size_t i = 0; i < num_placed_; ++i) {
    if (placed_[i].shape == shape) return placed_[i];
  }
  if (num_placed_ == placed_.size()) placed_.push_back(make_placed());
  Placed& work = placed_[num_placed_++];
  work.shape = shape;
  send_plan(work);
  return work;
}

void Attention::send_plan(Placed& work) const {
  AttentionPlan plan = plan_attention(batch_, work.shape);
  if (pads_) pad(plan);
  std::byte* const first = work.upload.begin();
  std::size_t bytes = 0;
  const auto put = [&]<typename T>(Part<T>& part, const std::vector<T>& values) {
    part = {reinterpret_cast<const T*>(work.upload.on_device() + bytes), static_cast<std::uint32_t>(values.size())};
    const std::size_t end = bytes + values.size() * sizeof(T);
    CHECK_LE(end, work.upload.most_bytes());
    if (!values.empty()) std::memcpy(first + bytes, values.data(), values.size() * sizeof(T));
    bytes = on_boundary(end);
  };
  put(work.narrow, plan.narrow);
  put(work.wide, plan.wide);
  put(work.narrow_accumulating, plan.narrow_accumulating);
  put(work.wide_accumulating, plan.wide_accumulating);
  put(work.row_parts, plan.row_parts);
  put(work.rows_in_parts, plan.rows_in_parts);
  work.upload.send(bytes);
}

void Attention::grow(DeviceMemory& room, std::size_t bytes, const char* what) {
  if (bytes > room.bytes()) room = DeviceMemory(device_, bytes, what);
}

}  // namespace quire::gpu
