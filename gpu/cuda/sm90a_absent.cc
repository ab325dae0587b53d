// In place of sm90a_kernels.cu where nothing is compiled for sm_90a.
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

WarpgroupTable linear_warpgroups() { return {}; }
Entry<AttendBf16Deep> attend_bf16_deep() { return {}; }
Entry<AttendFp8Deep> attend_fp8_deep() { return {}; }
Entry<AttendInt8Deep> attend_int8_deep() { return {}; }

}  // namespace quire::gpu
