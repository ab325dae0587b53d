#include "core/cpu/linear.h"

#include <algorithm>

namespace quire::cpu {

void Product::prepare(std::uint32_t row) const {
  if (prepares()) context_.coder.code_row(context_.kernels, w_, x_, row);
}

void Product::multiply(Range rows, Range panels) const {
  GemmArgs args;
  args.x = x_.row(rows.first);
  args.x_stride = x_.stride();
  if (prepares()) args.coded = context_.coder.rows(w_, rows.first);
  if (RowCoder::are_floats(w_)) {
    args.x = reinterpret_cast<const float*>(args.coded.codes);
    args.x_stride = args.coded.code_stride / sizeof(float);
    args.coded = {};
  }
  args.rows = rows.last - rows.first;
  args.k = w_.k();
  args.panels = w_.panel(panels.first);
  args.panel_bytes = w_.panel_bytes();
  args.blocks = w_.kernels().blocks;
  args.n = std::min(w_.n(), panels.last * kLanes) - panels.first * kLanes;
  args.scales = w_.scales() == nullptr ? nullptr : w_.scales() + panels.first * kLanes;
  args.bias = w_.bias() == nullptr ? nullptr : w_.bias() + panels.first * kLanes;
  args.out = out_.row(rows.first) + column_ + panels.first * kLanes;
  args.out_stride = out_.stride();
  context_.kernels.gemm[w_.kernels().gemm](args);
}

ProductChunks::ProductChunks(const KernelContext& context, const PackedWeight& w, std::uint32_t rows,
                             std::uint32_t num_units)
    : ProductChunks(context, rows, num_units, num_chunks(cost(w, rows), context.team.size())) {}

ProductChunks::ProductChunks(const KernelContext& context, std::uint32_t rows, std::uint32_t num_units,
                             std::uint32_t wanted)
    : num_units_(num_units), num_rows_(rows) {
  unit_parts_ = std::min(num_units, wanted);
  // A narrow matrix with many rows: rows are cut, too, into pieces of a few tiles.
  row_parts_ = std::clamp(wanted / unit_parts_, 1u, std::max(1u, rows / (4 * context.kernels.tile_rows)));
}

std::size_t ProductChunks::cost(const PackedWeight& w, std::uint32_t rows) {
  // Multiplying by a weight takes as long as in bf16, however few bits it has.
  const std::size_t panel_cost = std::max(w.panel_bytes(), std::size_t{w.k()} * kLanes * 2);
  return w.num_panels() * panel_cost * std::max(1u, rows / 8);
}

Range panels_of(const Kernels& kernels, const PackedWeight& w, Range units) {
  return {units.first * kernels.tile_panels, std::min(w.num_panels(), units.last * kernels.tile_panels)};
}

std::uint32_t num_units(const Kernels& kernels, std::uint32_t num_panels) {
  return (num_panels + kernels.tile_panels - 1) / kernels.tile_panels;
}

ProductChunks tile_chunks(const KernelContext& context, const PackedWeight& w, std::uint32_t rows) {
  return {context, w, rows, num_units(context.kernels, w.num_panels())};
}

void multiply(const KernelContext& context, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
              std::uint32_t column, HostBuffer& out) {
  multiply_then(
      context, x, w, tile_chunks(context, w, rows), out, [](Range, Range, std::uint32_t) {}, column);
}

}  // namespace quire::cpu
