// The kernels as something that can be started: one table for each machine that runs them.
// Thread  any: no state.
#pragma once

#include <cstddef>

#include "gpu/kernels/attention.h"
#include "gpu/kernels/attention_tiles.h"
#include "gpu/kernels/linear.h"
#include "gpu/kernels/merge_spans.h"
#include "gpu/kernels/rope_store.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

template <typename Kernel>
concept UsesShared = requires { Kernel::kSharedBytes; };

template <typename Kernel>
constexpr std::size_t shared_bytes_of() {
  if constexpr (UsesShared<Kernel>) {
    return Kernel::kSharedBytes;
  } else {
    return 0;
  }
}

// A kernel's code on one machine: for CUDA the address of its __global__ function, for the simulator what a thread does.
template <typename Kernel>
struct Entry {
  const void* code = nullptr;
};

struct KernelTable {
  Entry<Embed> embed;
  Entry<Norm> norm;
  Entry<ActMul> act_mul;
  Entry<Add> add;
  Entry<CopyRows> copy_rows;
  Entry<RoundRows> round_rows;
  Entry<LinearDot> linear_dot;
  Entry<LinearTiles> linear_tiles;
  Entry<RopeStore> rope_store;
  Entry<SetAside> set_aside;
  Entry<StoreGroups> store_groups;
  Entry<CopyKvRow> copy_kv_row;
  Entry<Attend> attend;
  Entry<AttendBf16> attend_bf16;
  Entry<AttendBf16Wide> attend_bf16_wide;
  Entry<AttendFp8> attend_fp8;
  Entry<AttendFp8Wide> attend_fp8_wide;
  Entry<AttendInt8> attend_int8;
  Entry<AttendInt8Wide> attend_int8_wide;
  Entry<AttendInt4> attend_int4;
  Entry<AttendInt4Wide> attend_int4_wide;
  Entry<MergeSpans> merge_spans;
};

const KernelTable& simulated_kernels();
const KernelTable& cuda_kernels();  // where nvcc built it

}  // namespace quire::gpu
