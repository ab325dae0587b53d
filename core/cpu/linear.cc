#include "core/cpu/linear.h"

#include <algorithm>

#include "core/cpu/share_out.h"

namespace quire::cpu {

void linear(const Kernels& kernels, Team& team, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
            HostBuffer& out) {
  const std::uint32_t num_panels = w.num_panels();
  const std::uint32_t num_groups = (num_panels + kernels.tile_panels - 1) / kernels.tile_panels;
  // However few bits a weight has, multiplying by it takes as long as in bf16.
  const std::size_t panel_cost = std::max(w.panel_bytes(), std::size_t{w.k()} * kLanes * 2);
  const std::size_t cost = num_panels * panel_cost * std::max(1u, rows / 8);
  const std::uint32_t wanted = num_chunks(cost, team.size());
  const std::uint32_t panel_parts = std::min(num_groups, wanted);
  // A narrow matrix with many rows: rows are cut too, in pieces of a few tiles.
  const std::uint32_t row_parts = std::clamp(wanted / panel_parts, 1u, std::max(1u, rows / (4 * kernels.tile_rows)));

  team.for_chunks(panel_parts * row_parts, [&](std::uint32_t chunk, std::uint32_t) {
    const Range groups = part_of(num_groups, panel_parts, chunk / row_parts);
    const Range part = part_of(rows, row_parts, chunk % row_parts);
    const std::uint32_t first_panel = groups.first * kernels.tile_panels;
    const std::uint32_t last_panel = std::min(num_panels, groups.last * kernels.tile_panels);
    GemmArgs args;
    args.x = x.row(part.first);
    args.x_stride = x.stride();
    args.rows = part.last - part.first;
    args.k = w.k();
    args.panels = w.panel(first_panel);
    args.panel_bytes = w.panel_bytes();
    args.n = std::min(w.n(), last_panel * kLanes) - first_panel * kLanes;
    args.scales = w.scales() == nullptr ? nullptr : w.scales() + first_panel * kLanes;
    args.bias = w.bias() == nullptr ? nullptr : w.bias() + first_panel * kLanes;
    args.out = out.row(part.first) + first_panel * kLanes;
    args.out_stride = out.stride();
    kernels.gemm[static_cast<int>(w.type())](args);
  });
}

}  // namespace quire::cpu
