#include "gpu/linear_layers.h"

#include <algorithm>
#include <type_traits>

#include "core/backend/device_cast.h"
#include "core/base/check.h"
#include "core/base/start_error.h"

namespace quire::gpu {

using backend::BlockType;
using backend::Format;

namespace {

constexpr Format times_int8(BlockType type) { return Format::of_blocks(type, Format::Activation::kInt8); }

}  // namespace

// f32, f16 and blocks times f32, but those of FP8, have one kernel, which takes rows as they are: LinearDot.
struct LinearLayers::FormatKernels {
  Format format;
  void (LinearLayers::*start)(const LinearGrid& grid, const LinearArgs& args);
  void (LinearLayers::*start_by_expert)(Index grid, const LinearArgs& args, const ExpertRows& experts);
};

LinearScratch linear_scratch(Format format, std::uint32_t k, std::uint32_t max_rows, bool warpgroups) {
  LinearScratch scratch;
  if (!by_tensor_cores(format)) return scratch;
  const std::uint32_t unit = warpgroups && max_rows >= kWarpgroupsFrom ? kRowBlock : kTileRows;
  const std::size_t numbers = std::size_t{round_up(max_rows, unit)} * num_steps(k) * kStepInputs;
  scratch.rows = has_row_scales(format) ? numbers : numbers * sizeof(std::uint16_t);
  if (has_row_scales(format)) scratch.row_scales = std::size_t{max_rows} * num_slices(k) * sizeof(float);
  return scratch;
}

LinearLayers::LinearLayers(Device& device, std::uint32_t max_rows, bool warpgroups)
    : device_(device),
      max_rows_(max_rows),
      warpgroups_(warpgroups && device.runs(device.kernels().linear.warpgroups.bf16.many_tiles)) {}

bool LinearLayers::has_warpgroups(Format format) const {
  return warpgroups_ && by_tensor_cores(format) && !in_integers(format) && !format.is_blocks();
}

void LinearLayers::reserve(Format format, std::uint32_t k) {
  if (std::ranges::find(reserved_, std::pair(format, k)) == reserved_.end()) reserved_.emplace_back(format, k);
  const LinearScratch wanted = linear_scratch(format, k, max_rows_, has_warpgroups(format));
  const auto grow = [&](DeviceMemory& memory, std::size_t bytes, const char* what) {
    if (bytes > memory.bytes()) memory = DeviceMemory(device_, bytes, what);
  };
  grow(rows_, wanted.rows, "rows for the tensor cores");
  grow(row_scales_, wanted.row_scales, "scales of rows");
}

void LinearLayers::multiply(const RowsToPut& rows, std::uint32_t num_rows, const WeightView& w,
                            const LinearFinish& finish, float* out, std::uint32_t out_width) {
  CHECK_LE(num_rows, max_rows_);
  CHECK_EQ(rows.width, w.k);
  if (num_rows == 0) return;
  const LinearTable& kernels = device_.kernels().linear;
  if (!by_tensor_cores(w.format)) {
    CHECK(rows.norm == nullptr && finish.kind == Finish::kStore);
    const Index blocks{pieces_of(w.n, LinearDot::kThreads), pieces_of(num_rows, LinearDot::kRows)};
    if (w.format.is_blocks()) {
      device_.start(kernels.dot_of_blocks, blocks, {rows.x, num_rows, w, out, out_width});
    } else {
      device_.start(kernels.dot, blocks, {rows.x, num_rows, w, out, out_width});
    }
    return;
  }
  CHECK(finish.kind != Finish::kGate || can_gate(w));
  const LinearGrid grid = linear_grid(w.format, w.n, num_rows, finish.kind == Finish::kGate, has_warpgroups(w.format));
  const bool by_warpgroups = grid.kernel == LinearKernel::kWarpgroups;
  const LinearScratch needed = linear_scratch(w.format, w.k, num_rows, by_warpgroups);
  CHECK_LE(needed.rows, rows_.bytes());
  CHECK_LE(needed.row_scales, row_scales_.bytes());
  RowsToPut ordered = rows;
  ordered.columns = w.columns;
  put_rows(ordered, num_rows, w.format, by_warpgroups);
  const LinearArgs args{rows_.as<const std::byte>(),
                        row_scales_.as<const float>(),
                        num_rows,
                        w,
                        finish.kind,
                        out,
                        out_width,
                        finish.scale,
                        finish.activation};
  (this->*kernels_of(w.format)->start)(grid, args);
}

const LinearLayers::FormatKernels* LinearLayers::kernels_of(Format format) {
  static constexpr FormatKernels kFormats[] = {
      {Format::kF32, nullptr, nullptr},
      {Format::kF16, nullptr, nullptr},
      {Format::kBF16, &LinearLayers::start_form<&LinearTable::bf16, &WarpgroupTable::bf16>,
       &LinearLayers::start_experts<&LinearTable::bf16>},
      {Format::kW16A16, &LinearLayers::start_form<&LinearTable::bf16, &WarpgroupTable::bf16>,
       &LinearLayers::start_experts<&LinearTable::bf16>},
      {Format::kInt8, &LinearLayers::start_form<&LinearTable::int8, &WarpgroupTable::int8>,
       &LinearLayers::start_experts<&LinearTable::int8>},
      {Format::kFp8, &LinearLayers::start_form<&LinearTable::fp8, &WarpgroupTable::fp8>,
       &LinearLayers::start_experts<&LinearTable::fp8>},
      {Format::kInt4, &LinearLayers::start_form<&LinearTable::int4, &WarpgroupTable::int4>,
       &LinearLayers::start_experts<&LinearTable::int4>},
      {Format::kW8A8, &LinearLayers::start_form<&LinearTable::w8a8>, &LinearLayers::start_experts<&LinearTable::w8a8>},
      {Format::kW8A8PerRow, &LinearLayers::start_form<&LinearTable::w8a8>,
       &LinearLayers::start_experts<&LinearTable::w8a8>},
      {Format::kW4A8, &LinearLayers::start_form<&LinearTable::w4a8>, &LinearLayers::start_experts<&LinearTable::w4a8>},
      {times_int8(BlockType::kQ4_0), &LinearLayers::start_blocks<&BlockTable::q4_0>,
       &LinearLayers::start_block_experts<&BlockTable::q4_0>},
      {times_int8(BlockType::kQ4_1), &LinearLayers::start_blocks<&BlockTable::q4_1>,
       &LinearLayers::start_block_experts<&BlockTable::q4_1>},
      {times_int8(BlockType::kQ5_0), &LinearLayers::start_blocks<&BlockTable::q5_0>,
       &LinearLayers::start_block_experts<&BlockTable::q5_0>},
      {times_int8(BlockType::kQ5_1), &LinearLayers::start_blocks<&BlockTable::q5_1>,
       &LinearLayers::start_block_experts<&BlockTable::q5_1>},
      {times_int8(BlockType::kQ8_0), &LinearLayers::start_blocks<&BlockTable::q8_0>,
       &LinearLayers::start_block_experts<&BlockTable::q8_0>},
      {times_int8(BlockType::kQ2_K), &LinearLayers::start_blocks<&BlockTable::q2_k>,
       &LinearLayers::start_block_experts<&BlockTable::q2_k>},
      {times_int8(BlockType::kQ3_K), &LinearLayers::start_blocks<&BlockTable::q3_k>,
       &LinearLayers::start_block_experts<&BlockTable::q3_k>},
      {times_int8(BlockType::kQ4_K), &LinearLayers::start_blocks<&BlockTable::q4_k>,
       &LinearLayers::start_block_experts<&BlockTable::q4_k>},
      {times_int8(BlockType::kQ5_K), &LinearLayers::start_blocks<&BlockTable::q5_k>,
       &LinearLayers::start_block_experts<&BlockTable::q5_k>},
      {times_int8(BlockType::kQ6_K), &LinearLayers::start_blocks<&BlockTable::q6_k>,
       &LinearLayers::start_block_experts<&BlockTable::q6_k>},
      {times_int8(BlockType::kIQ4_NL), &LinearLayers::start_blocks<&BlockTable::iq4_nl>,
       &LinearLayers::start_block_experts<&BlockTable::iq4_nl>},
      {times_int8(BlockType::kIQ4_XS), &LinearLayers::start_blocks<&BlockTable::iq4_xs>,
       &LinearLayers::start_block_experts<&BlockTable::iq4_xs>},
      {times_int8(BlockType::kMXFP4), &LinearLayers::start_blocks<&BlockTable::mxfp4>,
       &LinearLayers::start_block_experts<&BlockTable::mxfp4>},
      {times_int8(BlockType::kNVFP4), &LinearLayers::start_blocks<&BlockTable::nvfp4>,
       &LinearLayers::start_block_experts<&BlockTable::nvfp4>},
      {Format::of_blocks(BlockType::kFp8G32), &LinearLayers::start_blocks<&BlockTable::fp8_g32>,
       &LinearLayers::start_block_experts<&BlockTable::fp8_g32>},
      {Format::of_blocks(BlockType::kFp8G64), &LinearLayers::start_blocks<&BlockTable::fp8_g64>,
       &LinearLayers::start_block_experts<&BlockTable::fp8_g64>},
      {Format::of_blocks(BlockType::kFp8G128), &LinearLayers::start_blocks<&BlockTable::fp8_g64>,
       &LinearLayers::start_block_experts<&BlockTable::fp8_g64>},
  };
  static constexpr FormatKernels kBlocksTimesF32{Format::kF32, nullptr, nullptr};
  if (format.is_blocks() && !by_tensor_cores(format)) return &kBlocksTimesF32;
  const auto* found = std::ranges::find(kFormats, format, &FormatKernels::format);
  return found == std::end(kFormats) ? nullptr : found;
}

namespace {

// Calls see(expert, its weight) for one part of every expert's list.
template <typename See>
void for_experts(backend::ExpertWeights weights, std::size_t part, const See& see) {
  for (std::size_t expert = 0; expert < weights.size(); ++expert) {
    const WeightView& view = LinearLayers::view_of(weights[expert][part]);
    see(expert, ExpertWeight{view.numbers, view.scales, view.bias, view.columns});
  }
}

}  // namespace

const ExpertWeight* ExpertTables::find(backend::ExpertWeights weights, std::size_t part) const {
  const auto found = tables_.find(LinearLayers::view_of(weights.front()[part]).numbers);
  if (found == tables_.end() || found->second.weights.size() != weights.size()) return nullptr;
  const Table& table = found->second;
  bool is_same = true;
  for_experts(weights, part,
              [&](std::size_t expert, const ExpertWeight& own) { is_same = is_same && own == table.weights[expert]; });
  return is_same ? table.memory.as<const ExpertWeight>() : nullptr;
}

const ExpertWeight* ExpertTables::make(Device& device, backend::ExpertWeights weights, std::size_t part) {
  const WeightView& first = LinearLayers::view_of(weights.front()[part]);
  Table made;
  for_experts(weights, part, [&](std::size_t expert, const ExpertWeight& own) {
    const WeightView& view = LinearLayers::view_of(weights[expert][part]);
    CHECK(view.format == first.format && view.n == first.n && view.k == first.k);
    made.weights.push_back(own);
  });
  const std::size_t bytes = made.weights.size() * sizeof(ExpertWeight);
  made.memory = DeviceMemory(device, bytes, "weights of experts");
  device.upload(made.memory.data(), made.weights.data(), bytes);
  return tables_.insert_or_assign(first.numbers, std::move(made)).first->second.memory.as<const ExpertWeight>();
}

bool has_kernels(Format format) { return LinearLayers::kernels_of(format) != nullptr; }

void expect_kernels(Format format) {
  if (!has_kernels(format)) throw StartError("GPUs have no kernels for weights in " + name_of(format));
}

template <auto kEntries, auto kWarpgroupEntries>
void LinearLayers::start_form(const LinearGrid& grid, const LinearArgs& args) {
  const LinearTable& kernels = device_.kernels().linear;
  if constexpr (!std::is_null_pointer_v<decltype(kWarpgroupEntries)>) {
    if (grid.kernel == LinearKernel::kWarpgroups) return start(kernels.warpgroups.*kWarpgroupEntries, grid, args);
  }
  start(kernels.*kEntries, grid, args);
}

template <auto kEntries>
void LinearLayers::start_blocks(const LinearGrid& grid, const LinearArgs& args) {
  start(device_.kernels().linear.blocks.*kEntries, grid, args);
}

template <auto kEntries>
void LinearLayers::start_experts(Index grid, const LinearArgs& args, const ExpertRows& experts) {
  device_.start((device_.kernels().linear.*kEntries).by_expert, grid, {args, experts});
}

template <auto kEntries>
void LinearLayers::start_block_experts(Index grid, const LinearArgs& args, const ExpertRows& experts) {
  device_.start((device_.kernels().linear.blocks.*kEntries).by_expert, grid, {args, experts});
}

void LinearLayers::reserve_routes(const DeviceRoutes& routes) {
  max_rows_ = std::max(max_rows_, routes.num_tiles(routes.max_rows()) * kTileRows);
  for (const auto& [format, k] : std::vector(reserved_)) reserve(format, k);
}

void LinearLayers::multiply_by_expert(const RowsToPut& rows, backend::ExpertWeights weights, const DeviceRoutes& routes,
                                      std::uint32_t num_rows, const LinearFinish& finish, backend::Buffer& out,
                                      const std::function<void()>& before_table) {
  CHECK_LE(num_rows, routes.max_rows());
  if (num_rows == 0) return;
  float* to = backend::device_cast<DeviceBuffer>(out).data();
  for (std::size_t part = 0; part < weights.front().size(); ++part) {
    const WeightView& w = view_of(weights.front()[part]);
    const ExpertWeight* table = experts_.find(weights, part);
    if (table == nullptr) {
      before_table();
      table = experts_.make(device_, weights, part);
    }
    multiply_part(rows, routes, num_rows, w, table, finish, to, out.width());
    to += w.n;
  }
}

void LinearLayers::multiply_part(RowsToPut rows, const DeviceRoutes& routes, std::uint32_t num_rows,
                                 const WeightView& w, const ExpertWeight* weights, const LinearFinish& finish,
                                 float* out, std::uint32_t out_width) {
  CHECK_EQ(rows.width, w.k);
  const LinearTable& kernels = device_.kernels().linear;
  const std::uint32_t num_places = num_rows * routes.top_k();
  const std::uint32_t num_tiles = routes.num_tiles(num_rows);
  const ExpertRows experts{routes.tiles(), weights};
  if (!by_tensor_cores(w.format)) {
    CHECK(finish.kind == Finish::kStore);
    const Index blocks{pieces_of(w.n, LinearDot::kThreads), num_tiles};
    if (w.format.is_blocks()) {
      device_.start(kernels.dot_of_blocks_by_expert, blocks, {{rows.x, num_places, w, out, out_width}, experts});
    } else {
      device_.start(kernels.dot_by_expert, blocks, {{rows.x, num_places, w, out, out_width}, experts});
    }
    return;
  }
  CHECK(finish.kind != Finish::kAdd && (finish.kind != Finish::kGate || can_gate(w)));
  CHECK_LE(num_tiles * kTileRows, max_rows_);
  rows.slots = routes.slots();
  rows.experts = experts;
  put_rows(rows, num_places, w.format, false);
  LinearArgs args;
  args.x = rows_.as<const std::byte>();
  args.x_scales = row_scales_.as<const float>();
  args.w = w;
  args.finish = finish.kind;
  args.out = out;
  args.out_width = out_width;
  args.activation = finish.activation;
  (this->*kernels_of(w.format)->start_by_expert)({num_tiles, pieces_of(gpu::num_tiles(w.n), kPairTiles)}, args,
                                                 experts);
}

void LinearLayers::put_rows(const RowsToPut& rows, std::uint32_t num_rows, Format format, bool in_blocks) {
  const LinearTable& kernels = device_.kernels().linear;
  if (format.is_blocks() && in_integers(format)) {
    device_.start(kernels.put_for_blocks, {num_rows, PutForBlocks::pieces(rows.width)}, {rows, rows_.as<std::byte>()});
  } else if (in_integers(format)) {
    device_.start(
        kernels.put_in_integers, {num_rows, PutInIntegers::pieces(rows.width)},
        {rows, format.activation == Format::Activation::kInt8PerRow, rows_.as<std::int8_t>(), row_scales_.as<float>()});
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
