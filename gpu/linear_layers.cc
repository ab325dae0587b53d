#include "gpu/linear_layers.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::gpu {

using backend::WeightType;

LinearScratch linear_scratch(WeightType type, std::uint32_t k, std::uint32_t max_rows, bool warpgroups) {
  LinearScratch scratch;
  if (!in_tiles(type)) return scratch;
  const std::uint32_t unit = warpgroups && max_rows >= kWarpgroupsFrom ? kRowBlock : kTileRows;
  const std::size_t numbers = std::size_t{round_up(max_rows, unit)} * num_steps(k) * kStepInputs;
  scratch.rows = in_integers(type) ? numbers : numbers * sizeof(std::uint16_t);
  if (in_integers(type)) scratch.row_scales = std::size_t{max_rows} * num_slices(k) * sizeof(float);
  return scratch;
}

LinearLayers::LinearLayers(Device& device, std::uint32_t max_rows, bool warpgroups)
    : device_(device),
      max_rows_(max_rows),
      warpgroups_(warpgroups && device.runs(device.kernels().linear.warpgroups.bf16.many_tiles)) {}

bool LinearLayers::has_warpgroups(WeightType type) const { return warpgroups_ && in_tiles(type) && !in_integers(type); }

void LinearLayers::reserve(WeightType type, std::uint32_t k) {
  const LinearScratch wanted = linear_scratch(type, k, max_rows_, has_warpgroups(type));
  const auto grow = [&](DeviceMemory& memory, std::size_t bytes, const char* what) {
    if (bytes > memory.bytes()) memory = DeviceMemory(device_, bytes, what);
  };
  grow(rows_, wanted.rows, "rows for the tensor cores");
  grow(row_scales_, wanted.row_scales, "scales of rows");
}

void LinearLayers::multiply(const RowsToPut& rows, std::uint32_t num_rows, const WeightView& w, Finish finish,
                            float* out) {
  CHECK_LE(num_rows, max_rows_);
  CHECK_EQ(rows.width, w.k);
  if (num_rows == 0) return;
  const LinearTable& kernels = device_.kernels().linear;
  if (!in_tiles(w.type)) {
    CHECK(rows.norm == nullptr && finish == Finish::kStore);
    device_.start(kernels.dot, {pieces_of(w.n, LinearDot::kThreads), pieces_of(num_rows, LinearDot::kRows)},
                  {rows.x, num_rows, w, out});
    return;
  }
  CHECK(finish != Finish::kGate || can_gate(w));
  const LinearGrid grid = linear_grid(w.type, w.n, num_rows, finish == Finish::kGate, has_warpgroups(w.type));
  const bool by_warpgroups = grid.kernel == LinearKernel::kWarpgroups;
  const LinearScratch needed = linear_scratch(w.type, w.k, num_rows, by_warpgroups);
  CHECK_LE(needed.rows, rows_.bytes());
  CHECK_LE(needed.row_scales, row_scales_.bytes());
  put_rows(rows, num_rows, w.type, by_warpgroups);
  const LinearArgs args{rows_.as<const std::byte>(), row_scales_.as<const float>(), num_rows, w, finish, out};
  const auto start_of = [&](const auto& warpgroups, const auto& others) {
    by_warpgroups ? start(warpgroups, grid, args) : start(others, grid, args);
  };
  switch (w.type) {
    case WeightType::kInt8:
      return start_of(kernels.warpgroups.int8, kernels.int8);
    case WeightType::kFp8:
      return start_of(kernels.warpgroups.fp8, kernels.fp8);
    case WeightType::kInt4:
      return start_of(kernels.warpgroups.int4, kernels.int4);
    case WeightType::kW8A8:
      return start(kernels.w8a8, grid, args);
    case WeightType::kW4A8:
      return start(kernels.w4a8, grid, args);
    default:
      return start_of(kernels.warpgroups.bf16, kernels.bf16);
  }
}

void LinearLayers::put_rows(const RowsToPut& rows, std::uint32_t num_rows, WeightType type, bool in_blocks) {
  const LinearTable& kernels = device_.kernels().linear;
  if (in_integers(type)) {
    device_.start(kernels.put_in_integers, {num_rows, PutInIntegers::pieces(rows.width)},
                  {rows, rows_.as<std::int8_t>(), row_scales_.as<float>()});
  } else {
    device_.start(kernels.put_in_bf16, {num_rows, PutInBf16::pieces(rows.width)},
                  {rows, rows_.as<std::uint16_t>(), in_blocks});
  }
}

template <typename Form>
void LinearLayers::start(const WarpgroupEntries<Form>& entries, const LinearGrid& grid, const LinearArgs& args) {
  const Index blocks{grid.row_blocks, grid.groups};
  const bool half = grid.row_tiles * kTileRows == kHalfRowBlock;
  if (grid.tiles == kManyTiles) {
    return half ? device_.start(entries.many_tiles_half, blocks, args)
                : device_.start(entries.many_tiles, blocks, args);
  }
  half ? device_.start(entries.few_tiles_half, blocks, args) : device_.start(entries.few_tiles, blocks, args);
}

template <typename Form>
void LinearLayers::start(const LinearEntries<Form>& entries, const LinearGrid& grid, const LinearArgs& args) {
  const Index blocks{grid.row_blocks, grid.groups};
  if (grid.kernel == LinearKernel::kWide) return device_.start(entries.wide, blocks, args);
  switch (grid.row_tiles) {
    case 1:
      return grid.tiles == 1 ? device_.start(entries.split_1_1, blocks, args)
                             : device_.start(entries.split_1_2, blocks, args);
    case 2:
      return grid.tiles == 1 ? device_.start(entries.split_2_1, blocks, args)
                             : device_.start(entries.split_2_2, blocks, args);
    default:
      return device_.start(entries.split_4_2, blocks, args);
  }
}

}  // namespace quire::gpu
