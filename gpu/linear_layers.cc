#include "gpu/linear_layers.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::gpu {

using backend::WeightType;

LinearScratch linear_scratch(WeightType type, std::uint32_t n, std::uint32_t k, std::uint32_t max_rows) {
  LinearScratch scratch;
  if (!in_tiles(type)) return scratch;
  const std::size_t numbers = std::size_t{round_up(max_rows, kTileRows)} * num_steps(k) * kStepInputs;
  scratch.rows = in_integers(type) ? numbers : numbers * sizeof(std::uint16_t);
  if (in_integers(type)) scratch.row_scales = std::size_t{max_rows} * num_slices(k) * sizeof(float);
  // How many parts there are changes where another block of rows, or another kernel, begins.
  for (std::uint32_t blocks = 1; blocks <= pieces_of(max_rows, kTileRows); ++blocks) {
    const std::uint32_t rows = std::min(max_rows, blocks * kTileRows);
    const LinearGrid grid = linear_grid(type, n, k, rows);
    scratch.kept = std::max(scratch.kept, num_kept(grid, n, rows) * sizeof(float));
    scratch.counters = std::max(scratch.counters, num_counters(grid) * sizeof(std::uint32_t));
  }
  return scratch;
}

LinearLayers::LinearLayers(Device& device, std::uint32_t max_rows, bool warpgroups)
    : device_(device),
      max_rows_(max_rows),
      warpgroups_(warpgroups && device.runs(device.kernels().linear.warpgroups)) {}

bool LinearLayers::by_warpgroups(WeightType type, std::uint32_t num_rows) const {
  return warpgroups_ && (type == WeightType::kBF16 || type == WeightType::kW16A16) && num_rows > kMoreRows.rows();
}

void LinearLayers::reserve(WeightType type, std::uint32_t n, std::uint32_t k) {
  LinearScratch wanted = linear_scratch(type, n, k, max_rows_);
  if (by_warpgroups(type, max_rows_)) {
    wanted.rows = std::size_t{round_up(max_rows_, kRowBlock)} * num_steps(k) * kStepInputs * sizeof(std::uint16_t);
  }
  const auto grow = [&](DeviceMemory& memory, std::size_t bytes, const char* what) {
    if (bytes > memory.bytes()) memory = DeviceMemory(device_, bytes, what);
  };
  grow(rows_, wanted.rows, "rows for the tensor cores");
  grow(row_scales_, wanted.row_scales, "scales of rows");
  grow(kept_, wanted.kept, "sums of slices");
  if (wanted.counters > counters_.bytes()) {
    counters_ = DeviceMemory(device_, wanted.counters, "counters");
    device_.fill(counters_.data(), std::byte{0}, wanted.counters);
  }
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
  put_rows(rows, num_rows, w.type);
  const LinearGrid grid = linear_grid(w.type, w.n, w.k, num_rows);
  CHECK_LE(num_kept(grid, w.n, num_rows) * sizeof(float), kept_.bytes());
  CHECK_LE(num_counters(grid) * sizeof(std::uint32_t), counters_.bytes());
  const LinearArgs args{
      rows_.as<const std::byte>(), row_scales_.as<const float>(), num_rows, w,  grid.groups, grid.slices_of_part,
      kept_.as<float>(),           counters_.as<std::uint32_t>(), finish,   out};
  const Index blocks{grid.row_blocks, grid.groups * grid.parts()};
  if (by_warpgroups(w.type, num_rows)) return device_.start(kernels.warpgroups, blocks, args);
  switch (w.type) {
    case WeightType::kInt8:
      return start(kernels.int8, blocks, args);
    case WeightType::kFp8:
      return start(kernels.fp8, blocks, args);
    case WeightType::kInt4:
      return start(kernels.int4, blocks, args);
    case WeightType::kW8A8:
      return start(kernels.w8a8, blocks, args);
    case WeightType::kW4A8:
      return start(kernels.w4a8, blocks, args);
    default:
      return start(kernels.bf16, blocks, args);
  }
}

void LinearLayers::put_rows(const RowsToPut& rows, std::uint32_t num_rows, WeightType type) {
  const LinearTable& kernels = device_.kernels().linear;
  if (in_integers(type)) {
    device_.start(kernels.put_in_integers, {num_rows, 1}, {rows, rows_.as<std::int8_t>(), row_scales_.as<float>()});
  } else {
    device_.start(kernels.put_in_bf16, {num_rows, 1}, {rows, rows_.as<std::uint16_t>(), by_warpgroups(type, num_rows)});
  }
}

template <typename Form>
void LinearLayers::start(const LinearEntries<Form>& entries, Index grid, const LinearArgs& args) {
  if (args.num_rows <= kFewRows.rows()) return device_.start(entries.few, grid, args);
  if (args.num_rows <= kSomeRows.rows()) return device_.start(entries.some, grid, args);
  if (args.num_rows <= kMoreRows.rows()) return device_.start(entries.more, grid, args);
  device_.start(entries.many, grid, args);
}

}  // namespace quire::gpu
