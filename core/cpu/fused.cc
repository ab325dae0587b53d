#include "core/cpu/fused.h"

#include <algorithm>

#include "core/cpu/linear.h"
#include "core/cpu/rope_store.h"
#include "core/cpu/team/share_out.h"

namespace quire::cpu {

using backend::AttentionSpec;
using backend::Batch;
using backend::Norm;

namespace {

// One job: norms every row into `normed` and prepares it for the product, then runs multiply_chunk(chunk).
template <typename MultiplyChunk>
void norm_then(const KernelContext& context, std::uint32_t rows, const HostBuffer& x, const Norm& norm,
               HostBuffer& normed, const Product& product, std::uint32_t num_chunks,
               const MultiplyChunk& multiply_chunk) {
  const RowChunks norms(context.team, rows, std::size_t{x.width()} * 2 * sizeof(float));
  const auto norm_chunk = [&](std::uint32_t chunk, std::uint32_t) {
    norms.for_rows(chunk, [&](std::uint32_t row) {
      norm_values(context.kernels, norm, x.row(row), normed.row(row), 0, x.width());
      product.prepare(row);
    });
  };
  context.team.for_chunks(norms.count(), norm_chunk, num_chunks, multiply_chunk);
}

}  // namespace

bool can_fuse_qkv(const AttentionSpec& spec, const backend::KvCache& cache) {
  const bool by_heads = !spec.q_norm.whole_row && !spec.k_norm.whole_row && !spec.v_norm.whole_row;
  return by_heads && spec.stores && spec.latent == 0 && spec.head_dim % kLanes == 0 &&
         cache.shape().type != backend::KvType::kInt4;
}

// Units are heads: first the kv heads with their keys and values, then the query heads, which are less work.
void norm_qkv_rope_store(const KernelContext& context, const Batch& batch, const AttentionSpec& spec, const Norm& norm,
                         const HostBuffer& x, const PackedWeight& w, HostBuffer& normed, HostBuffer& qkv,
                         PagedCache& cache) {
  const RopeStore heads(context.kernels, batch, spec, qkv, cache);
  const std::uint32_t rows = batch.num_rows();
  const std::uint32_t num_kv = spec.num_kv_heads;
  const std::uint32_t head_panels = spec.head_dim / kLanes;
  const ProductChunks chunks(context, w, rows, num_kv + spec.num_heads);
  const Product product(context, normed, w, qkv);
  // Multiplies heads [first, last) of the q|k|v columns.
  const auto multiply_heads = [&](Range part, std::uint32_t first, std::uint32_t last) {
    product.multiply(part, {first * head_panels, last * head_panels});
  };
  norm_then(context, rows, x, norm, normed, product, chunks.count(), [&](std::uint32_t chunk, std::uint32_t) {
    const Range units = chunks.units(chunk);
    const Range part = chunks.rows(chunk);
    const Range kv{std::min(units.first, num_kv), std::min(units.last, num_kv)};
    if (kv.first < kv.last) {
      const std::uint32_t first_key = spec.num_heads;
      const std::uint32_t first_value = spec.num_heads + num_kv;
      multiply_heads(part, first_key + kv.first, first_key + kv.last);
      multiply_heads(part, first_value + kv.first, first_value + kv.last);
      for (std::uint32_t row = part.first; row < part.last; ++row) heads.store_keys(row, kv);
    }
    const Range queries{std::max(units.first, num_kv) - num_kv, std::max(units.last, num_kv) - num_kv};
    if (queries.first < queries.last) {
      multiply_heads(part, queries.first, queries.last);
      for (std::uint32_t row = part.first; row < part.last; ++row) heads.rotate_queries(row, queries);
    }
  });
}

bool can_fuse_gate_up(const backend::Weight& gate_up) { return gate_up.n() / 2 % kLanes == 0; }

// Units are tiles of the gates, with the same outputs of up.
void norm_gate_up(const KernelContext& context, std::uint32_t rows, const Norm& norm, const HostBuffer& x,
                  const PackedWeight& w, backend::Activation kind, HostBuffer& normed, HostBuffer& gate_up,
                  HostBuffer& out) {
  const auto activate = context.kernels.activate[static_cast<int>(kind)];
  const std::uint32_t width = out.width();
  const std::uint32_t num_gates = width / kLanes;  // panels
  const ProductChunks chunks(context, w, rows, num_units(context.kernels, num_gates));
  const Product product(context, normed, w, gate_up);
  norm_then(context, rows, x, norm, normed, product, chunks.count(), [&](std::uint32_t chunk, std::uint32_t) {
    const Range part = chunks.rows(chunk);
    Range gates = panels_of(context.kernels, w, chunks.units(chunk));
    gates.last = std::min(gates.last, num_gates);
    product.multiply(part, gates);
    product.multiply(part, {num_gates + gates.first, num_gates + gates.last});
    const std::size_t first = gates.first * kLanes;
    for (std::uint32_t row = part.first; row < part.last; ++row) {
      const float* gate = gate_up.row(row) + first;
      activate(gate, gate + width, gates.last * kLanes - first, out.row(row) + first);
    }
  });
}

void project_add(const KernelContext& context, std::uint32_t rows, const HostBuffer& y, const PackedWeight& w,
                 HostBuffer& products, float scale, HostBuffer& x) {
  multiply_then(context, y, w, tile_chunks(context, w, rows), products, [&](Range part, Range panels, std::uint32_t) {
    const std::size_t first = panels.first * kLanes;
    const std::size_t last = std::min<std::size_t>(w.n(), panels.last * kLanes);
    for (std::uint32_t row = part.first; row < part.last; ++row) {
      context.kernels.add(x.row(row) + first, products.row(row) + first, scale, last - first);
    }
  });
}

}  // namespace quire::cpu
