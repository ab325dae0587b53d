// Fused ops: a layer in five jobs of the team, attention among them. Each job multiplies by one weight. The work before
// the product is the job's first part; the work after it is done by the worker that made the outputs, while they are in
// its cache.
//   norm → q|k|v → rope, store     out-projection → add     norm → gate|up → act·mul     down-projection → add
// Equals  the composition of plain ops, bit for bit (core/backend/linear.cc).
// Shape   as in core/backend/step_ops.h.
// Thread  engine; chunks run on the team.
#pragma once

#include "core/backend/attention_spec.h"
#include "core/backend/batch.h"
#include "core/backend/linear.h"
#include "core/cpu/linear.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// True if heads are whole panels, no norm takes a whole row of them, and k and v are stored, row by row.
bool can_fuse_qkv(const backend::AttentionSpec& spec, const backend::KvCache& cache);
void norm_qkv_rope_store(const KernelContext& context, const backend::Batch& batch, const backend::AttentionSpec& spec,
                         const backend::Norm& norm, const HostBuffer& x, const PackedWeight& w, HostBuffer& normed,
                         HostBuffer& qkv, PagedCache& cache);

// True if the up matrix begins with a panel of its own.
bool can_fuse_gate_up(const backend::Weight& gate_up);
void norm_gate_up(const KernelContext& context, std::uint32_t rows, const backend::Norm& norm, const HostBuffer& x,
                  const PackedWeight& w, backend::Activation kind, HostBuffer& normed, HostBuffer& gate_up,
                  HostBuffer& out);

void project_add(const KernelContext& context, std::uint32_t rows, const HostBuffer& y, const PackedWeight& w,
                 HostBuffer& products, float scale, HostBuffer& x);

}  // namespace quire::cpu
