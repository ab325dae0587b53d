// Products: out[r, column + n] = x[r,:] · w[n,:] (· scale) + bias for any number of rows, in one pass over the weights;
// and the pieces of one, for ops that do more than that. Rows are quantised or rounded first if the weight needs it.
// Shape   x [rows, K], w [N, K] in panels, out [rows, column + N or wider].
// Thread  multiply(): engine; the team shares the panels, and rows if there are few panels. The pieces: any worker.
#pragma once

#include <cstdint>

#include "core/cpu/isa/kernels.h"
#include "core/cpu/row_coder.h"
#include "core/cpu/team/parallel_for.h"
#include "core/cpu/team/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// Objects that ops compute with: CpuOps has one of each.
struct KernelContext {
  const Kernels& kernels;
  Team& team;
  RowCoder& coder;
};

// One product: prepare() every row, then multiply() everything in any pieces.
class Product {
 public:
  Product(const KernelContext& context, const HostBuffer& x, const PackedWeight& w, HostBuffer& out,
          std::uint32_t column = 0)
      : context_(context), x_(x), w_(w), out_(out), column_(column) {}

  // True if prepare() has anything to do.
  bool prepares() const { return w_.wants_codes(); }
  // Codes a row of x, once the row is complete.
  void prepare(std::uint32_t row) const;
  // Computes some panels' outputs for some rows.
  void multiply(Range rows, Range panels) const;

 private:
  const KernelContext& context_;
  const HostBuffer& x_;
  const PackedWeight& w_;
  HostBuffer& out_;
  std::uint32_t column_;
};

// Chunks of a product: chunk i is a part of the units of its outputs, times a part of its rows.
class ProductChunks {
 public:
  // A unit is one or several panels that go to one worker together; the last may have fewer.
  ProductChunks(const KernelContext& context, const PackedWeight& w, std::uint32_t rows, std::uint32_t num_units);
  // About `wanted` chunks.
  ProductChunks(const KernelContext& context, std::uint32_t rows, std::uint32_t num_units, std::uint32_t wanted);

  // The time of a product with w, in bytes of weights.
  static std::size_t cost(const PackedWeight& w, std::uint32_t rows);

  std::uint32_t count() const { return unit_parts_ * row_parts_; }
  Range units(std::uint32_t chunk) const { return part_of(num_units_, unit_parts_, chunk / row_parts_); }
  Range rows(std::uint32_t chunk) const { return part_of(num_rows_, row_parts_, chunk % row_parts_); }
  std::uint32_t num_rows() const { return num_rows_; }
  // Index of the chunk's part of the units.
  std::uint32_t unit_part(std::uint32_t chunk) const { return chunk / row_parts_; }
  std::uint32_t num_unit_parts() const { return unit_parts_; }  // at most most_chunks()

 private:
  std::uint32_t num_units_;
  std::uint32_t num_rows_;
  std::uint32_t unit_parts_;
  std::uint32_t row_parts_;
};

// Panels of units that have tile_panels panels each.
Range panels_of(const Kernels& kernels, const PackedWeight& w, Range units);
std::uint32_t num_units(const Kernels& kernels, std::uint32_t num_panels);
// Chunks of all of w in such units.
ProductChunks tile_chunks(const KernelContext& context, const PackedWeight& w, std::uint32_t rows);

// Runs a product in one job of the team, in chunks of such units. Calls finish(rows, panels, index of the units' part)
// for each piece when it is computed.
template <typename Finish>
void multiply_then(const KernelContext& context, const HostBuffer& x, const PackedWeight& w,
                   const ProductChunks& chunks, HostBuffer& out, const Finish& finish, std::uint32_t column = 0) {
  const Product product(context, x, w, out, column);
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

void multiply(const KernelContext& context, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
              std::uint32_t column, HostBuffer& out);

}  // namespace quire::cpu
