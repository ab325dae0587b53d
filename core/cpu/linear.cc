#include "core/cpu/linear.h"

#include <algorithm>

#include "core/cpu/share_out.h"

namespace quire::cpu {

ProductChunks::ProductChunks(const Kernels& kernels, const Team& team, const PackedWeight& w, std::uint32_t rows,
                             std::uint32_t num_units)
    : num_units_(num_units), num_rows_(rows) {
  // However few bits a weight has, multiplying by it takes as long as in bf16.
  const std::size_t panel_cost = std::max(w.panel_bytes(), std::size_t{w.k()} * kLanes * 2);
  const std::uint32_t wanted = num_chunks(w.num_panels() * panel_cost * std::max(1u, rows / 8), team.size());
  unit_parts_ = std::min(num_units, wanted);
  // A narrow matrix with many rows: rows are cut too, in pieces of a few tiles.
  row_parts_ = std::clamp(wanted / unit_parts_, 1u, std::max(1u, rows / (4 * kernels.tile_rows)));
}

Range panels_of(const Kernels& kernels, const PackedWeight& w, Range units) {
  return {units.first * kernels.tile_panels, std::min(w.num_panels(), units.last * kernels.tile_panels)};
}

std::uint32_t num_units(const Kernels& kernels, std::uint32_t num_panels) {
  return (num_panels + kernels.tile_panels - 1) / kernels.tile_panels;
}

void multiply(const Kernels& kernels, const HostBuffer& x, const PackedWeight& w, Range rows, Range panels,
              HostBuffer& out) {
  GemmArgs args;
  args.x = x.row(rows.first);
  args.x_stride = x.stride();
  args.rows = rows.last - rows.first;
  args.k = w.k();
  args.panels = w.panel(panels.first);
  args.panel_bytes = w.panel_bytes();
  args.n = std::min(w.n(), panels.last * kLanes) - panels.first * kLanes;
  args.scales = w.scales() == nullptr ? nullptr : w.scales() + panels.first * kLanes;
  args.bias = w.bias() == nullptr ? nullptr : w.bias() + panels.first * kLanes;
  args.out = out.row(rows.first) + panels.first * kLanes;
  args.out_stride = out.stride();
  kernels.gemm[static_cast<int>(w.type())](args);
}

void linear(const Kernels& kernels, Team& team, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
            HostBuffer& out) {
  const ProductChunks chunks(kernels, team, w, rows, num_units(kernels, w.num_panels()));
  team.for_chunks(chunks.count(), [&](std::uint32_t chunk, std::uint32_t) {
    multiply(kernels, x, w, chunks.rows(chunk), panels_of(kernels, w, chunks.units(chunk)), out);
  });
}

}  // namespace quire::cpu
