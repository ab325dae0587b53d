// The fused ops: a layer in five jobs, attention among them. Each job multiplies by one weight; what comes before it is
// its first part, what comes after is done by the worker that made the outputs, while they are in its cache.
//   norm → q|k|v → rope, store     out-projection → add     norm → gate|up → act·mul     down-projection → add
// Equals  the composition of plain ops, bit for bit (core/backend/fused_defaults.cc).
// Shape   as in core/backend/ops.h.
// Thread  engine; chunks run on the team.
#pragma once

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/linear.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// Whether heads are whole panels, and the cache stores row by row.
bool can_fuse_qkv(const backend::AttentionSpec& spec, const backend::KvCache& cache);
void norm_qkv_rope_store(const KernelContext& context, const backend::Batch& batch, const backend::LayerSpec& layer,
                         const HostBuffer& x, HostBuffer& scratch, HostBuffer& qkv, PagedCache& cache);

// Whether the up matrix begins with a panel of its own.
bool can_fuse_gate_up(const backend::Weight& gate_up);
void norm_gate_up(const KernelContext& context, const backend::LayerSpec& layer, std::uint32_t rows,
                  const HostBuffer& x, HostBuffer& scratch, HostBuffer& gate_up, HostBuffer& out);

void project_add(const KernelContext& context, std::uint32_t rows, const HostBuffer& y, const PackedWeight& w,
                 HostBuffer& scratch, HostBuffer& x);

}  // namespace quire::cpu
