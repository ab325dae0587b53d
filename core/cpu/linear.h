// out[r,:] = x[r,:] · Wᵀ (· scales) + bias for any number of rows, in one pass over the weights: a whole linear, and
// the pieces of it for ops that do more than that. Rows are quantised or rounded first where the weight wants that.
// Shape   x [rows, K], w [N, K] in panels, out [rows, N].
// Thread  linear: engine; shares panels, and rows where there are few panels, out over the team. The pieces: any
//         worker.
#pragma once

#include <cstdint>

#include "core/cpu/isa/kernels.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/row_coder.h"
#include "core/cpu/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// What ops compute with: CpuOps has one of each.
struct KernelContext {
  const Kernels& kernels;
  Team& team;
  RowCoder& coder;
};

// One product: prepare() every row, then multiply() all of it in any pieces.
class Product {
 public:
  Product(const KernelContext& context, const HostBuffer& x, const PackedWeight& w, HostBuffer& out)
      : context_(context), x_(x), w_(w), out_(out) {}

  // Whether prepare() has anything to do.
  bool prepares() const { return w_.wants_codes(); }
  // The row of x is there: codes it.
  void prepare(std::uint32_t row) const;
  // Some panels' outputs for some rows.
  void multiply(Range rows, Range panels) const;

 private:
  const KernelContext& context_;
  const HostBuffer& x_;
  const PackedWeight& w_;
  HostBuffer& out_;
};

// How a product is dealt out: chunk i is a part of the units that its outputs come in, times a part of its rows.
class ProductChunks {
 public:
  // A unit is one or several panels that go to one worker together; the last may have fewer.
  ProductChunks(const KernelContext& context, const PackedWeight& w, std::uint32_t rows, std::uint32_t num_units);

  std::uint32_t count() const { return unit_parts_ * row_parts_; }
  Range units(std::uint32_t chunk) const { return part_of(num_units_, unit_parts_, chunk / row_parts_); }
  Range rows(std::uint32_t chunk) const { return part_of(num_rows_, row_parts_, chunk % row_parts_); }
  std::uint32_t num_rows() const { return num_rows_; }
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
// All of w in such units.
ProductChunks tile_chunks(const KernelContext& context, const PackedWeight& w, std::uint32_t rows);

// A product in one job of the team, in chunks of such units, and what is done with each piece of it:
// finish(rows, panels, chunk's part of the units).
template <typename Finish>
void multiply_then(const KernelContext& context, const HostBuffer& x, const PackedWeight& w,
                   const ProductChunks& chunks, HostBuffer& out, const Finish& finish) {
  const Product product(context, x, w, out);
  const std::uint32_t num_prepared = product.prepares() ? chunks.num_rows() : 0;
  const RowChunks preparing(context.team, num_prepared, std::size_t{w.k()} * 2 * sizeof(float));
  context.team.for_chunks(
      preparing.count(),
      [&](std::uint32_t chunk, std::uint32_t) {
        preparing.for_rows(chunk, [&](std::uint32_t row) { product.prepare(row); });
      },
      chunks.count(),
      [&](std::uint32_t chunk, std::uint32_t) {
        const Range part = chunks.rows(chunk);
        const Range panels = panels_of(context.kernels, w, chunks.units(chunk));
        product.multiply(part, panels);
        finish(part, panels, chunks.unit_part(chunk));
      });
}

void linear(const KernelContext& context, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
            HostBuffer& out);

}  // namespace quire::cpu
