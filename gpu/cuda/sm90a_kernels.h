// Kernels of instructions that sm_90a alone has, compiled for it alone.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/attention_warpgroups.h"
#include "gpu/kernels/linear_table.h"

namespace quire::gpu {

// No code (sm90a_absent.cc): this build is not for sm_90a.
WarpgroupTable linear_warpgroups();
Entry<AttendBf16Deep> attend_bf16_deep();
Entry<AttendFp8Deep> attend_fp8_deep();
Entry<AttendInt8Deep> attend_int8_deep();

}  // namespace quire::gpu
