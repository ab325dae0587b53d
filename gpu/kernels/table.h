// The kernels as something that can be started: one table for each machine that runs them.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/attention.h"
#include "gpu/kernels/entry.h"
#include "gpu/kernels/linear_table.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

struct KernelTable {
  Entry<Embed> embed;
  Entry<Norm> norm;
  Entry<ActMul> act_mul;
  Entry<Add> add;
  Entry<CopyRows> copy_rows;
  LinearTable linear;
  Entry<RopeStore> rope_store;
  Entry<CopyKvRow> copy_kv_row;
  Entry<Attend> attend;
};

const KernelTable& simulated_kernels();
const KernelTable& cuda_kernels();  // where nvcc built it

}  // namespace quire::gpu
