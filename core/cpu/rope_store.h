// Norms, rope, and storing in the cache (equations: core/backend/step_ops.h).
// Shape   qkv [T, (H+2G)·D]: q, k and v of every row; k and v go to the row's slot.
// Thread  rope_store: engine; the team shares the rows. RopeStore: any worker; different heads or rows at a time.
#pragma once

#include <cstdint>

#include "core/backend/attention_spec.h"
#include "core/backend/batch.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/team/parallel_for.h"
#include "core/cpu/team/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// Norm of n values by the kernel of its kind, with the norm's vectors from index `first` on. out may be x.
inline void norm_values(const Kernels& kernels, const backend::Norm& norm, const float* x, float* out,
                        std::size_t first, std::size_t n) {
  const float* scale = static_cast<const HostVector&>(*norm.scale).data() + first;
  if (norm.kind == backend::NormKind::kRms) return kernels.norm(x, scale, norm.eps, n, out);
  const float* bias = norm.bias == nullptr ? nullptr : static_cast<const HostVector*>(norm.bias)->data() + first;
  kernels.layer_norm(x, scale, bias, norm.eps, n, out);
}

// Rope and storing for some heads of one row.
class RopeStore {
 public:
  RopeStore(const Kernels& kernels, const backend::Batch& batch, const backend::AttentionSpec& spec, HostBuffer& qkv,
            PagedCache& cache);

  // Norms of whole rows of heads, which come before all else of a row.
  void norm_rows(std::uint32_t row) const;
  // Norms and rotates query heads.
  void rotate_queries(std::uint32_t row, Range heads) const;
  // Norms k and v of kv heads, rotates k, and stores both. int4 is not stored, because that takes a whole group of
  // rows.
  void store_keys(std::uint32_t row, Range heads) const;
  bool stores_rows() const { return cache_.shape().type != backend::KvType::kInt4; }

 private:
  void turn(float* head, std::uint32_t index, const backend::HeadNorm& norm, std::uint32_t position) const;
  void norm_head(float* head, std::uint32_t index, const backend::HeadNorm& norm) const;
  void rotate(float* head, std::uint32_t position) const;

  const Kernels& kernels_;
  const backend::Batch& batch_;
  const backend::AttentionSpec& spec_;
  HostBuffer& qkv_;
  PagedCache& cache_;
  const HostRope* rope_;  // null: no rotation
};

// All heads of all rows.
void rope_store(const Kernels& kernels, Team& team, const backend::Batch& batch, const backend::AttentionSpec& spec,
                HostBuffer& qkv, PagedCache& cache);

}  // namespace quire::cpu
