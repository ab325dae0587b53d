// out[r,:] = x[r,:] · Wᵀ (· scales) + bias for any number of rows, in one pass over the weights.
// Shape   x [rows, K], w [N, K] in panels, out [rows, N].
// Thread  linear: engine; shares panels, and rows where there are few panels, out over the team. multiply: any worker.
#pragma once

#include <cstdint>

#include "core/cpu/isa/kernels.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// How a product is dealt out: chunk i is a part of the units that its outputs come in, times a part of its rows.
class ProductChunks {
 public:
  // A unit is one or several panels that go to one worker together; the last may have fewer.
  ProductChunks(const Kernels& kernels, const Team& team, const PackedWeight& w, std::uint32_t rows,
                std::uint32_t num_units);

  std::uint32_t count() const { return unit_parts_ * row_parts_; }
  Range units(std::uint32_t chunk) const { return part_of(num_units_, unit_parts_, chunk / row_parts_); }
  Range rows(std::uint32_t chunk) const { return part_of(num_rows_, row_parts_, chunk % row_parts_); }
  // Which part of the units it is.
  std::uint32_t unit_part(std::uint32_t chunk) const { return chunk / row_parts_; }
  std::uint32_t num_unit_parts() const { return unit_parts_; }  // at most most_chunks()

 private:
  std::uint32_t num_units_;
  std::uint32_t num_rows_;
  std::uint32_t unit_parts_;
  std::uint32_t row_parts_;
};

// Units of tile_panels panels, as panels.
Range panels_of(const Kernels& kernels, const PackedWeight& w, Range units);
std::uint32_t num_units(const Kernels& kernels, std::uint32_t num_panels);

// Some panels' outputs for some rows, by the caller alone.
void multiply(const Kernels& kernels, const HostBuffer& x, const PackedWeight& w, Range rows, Range panels,
              HostBuffer& out);

void linear(const Kernels& kernels, Team& team, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
            HostBuffer& out);

}  // namespace quire::cpu
