// What attention has to move and to compute in a step, to hold measured times against.
// Shape   of one layer.
// Thread  any; pure.
// Source  roofline (Williams et al. 2009).
#pragma once

#include "core/backend/batch.h"
#include "gpu/attention_plan.h"
#include "gpu/device/layout.h"

namespace quire::gpu {

struct AttentionCost {
  double bytes = 0;  // the least: K and V that a sequence's rows see once for all of them, q, and what comes out
  double unit_bytes =
      0;  // what the plan's units read of K and V, each for itself, and of parts what is written and read again
  double flops = 0;  // two for a product and a sum: of q and K, and of weights and V, over what each row sees
};

AttentionCost attention_cost(const backend::Batch& batch, const AttentionPlan& plan, const KvLayout& layout,
                             std::uint32_t num_heads, std::uint32_t window);

}  // namespace quire::gpu
