// Rope, and the cache's writes (equations: core/backend/ops.h).
// Shape   qkv [T, (H+2G)·D]: q, k and v of every row; k and v go to the row's slot.
// Thread  rope_store: engine; rows are shared out over the team. RopeStore: any worker; different heads or rows at a time.
#pragma once

#include <cstdint>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/share_out.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// The pieces: some heads of one row.
class RopeStore {
 public:
  RopeStore(const Kernels& kernels, const backend::Batch& batch, const backend::AttentionSpec& spec, HostBuffer& qkv,
            PagedCache& cache);

  // Query heads: normed where the spec says so, rotated.
  void turn_queries(std::uint32_t row, Range heads) const;
  // Kv heads: k normed and rotated, k and v stored; int4: not stored, which takes a whole group of rows.
  void store_keys(std::uint32_t row, Range heads) const;
  bool stores_rows() const { return cache_.shape().type != backend::KvType::kInt4; }

 private:
  void turn(float* head, const HostVector* scale, std::uint32_t position) const;

  const Kernels& kernels_;
  const backend::Batch& batch_;
  const backend::AttentionSpec& spec_;
  HostBuffer& qkv_;
  PagedCache& cache_;
  const HostRope& rope_;
};

// All heads of all rows.
void rope_store(const Kernels& kernels, Team& team, const backend::Batch& batch, const backend::AttentionSpec& spec,
                HostBuffer& qkv, PagedCache& cache);

}  // namespace quire::cpu
