#include "gpu/cuda/enter.h"
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

Entry<LinearWarpgroups> linear_warpgroups() { return entry<LinearWarpgroups>(); }
Entry<AttendBf16Deep> attend_bf16_deep() { return entry<AttendBf16Deep>(); }
Entry<AttendFp8Deep> attend_fp8_deep() { return entry<AttendFp8Deep>(); }
Entry<AttendInt8Deep> attend_int8_deep() { return entry<AttendInt8Deep>(); }

}  // namespace quire::gpu
