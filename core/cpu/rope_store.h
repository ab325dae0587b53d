// Rope, and the cache's writes (equations: core/backend/ops.h).
// Shape   qkv [T, (H+2G)·D]: q, k and v of every row; k and v go to the row's slot.
// Thread  engine; rows are shared out over the team.
#pragma once

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/cpu/isa/kernels.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

void rope_store(const Kernels& kernels, Team& team, const backend::Batch& batch, const backend::AttentionSpec& spec,
                HostBuffer& qkv, PagedCache& cache);

}  // namespace quire::cpu
