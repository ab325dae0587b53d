#include "gpu/cuda/enter.h"
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

namespace {

template <typename Kernel>
void fill(Entry<Kernel>& to) {
  to = entry<Kernel>();
}

}  // namespace

WarpgroupTable linear_warpgroups() {
  return warpgroup_table([](auto& to) { fill(to); });
}
Entry<AttendBf16Deep> attend_bf16_deep() { return entry<AttendBf16Deep>(); }
Entry<AttendFp8Deep> attend_fp8_deep() { return entry<AttendFp8Deep>(); }
Entry<AttendInt8Deep> attend_int8_deep() { return entry<AttendInt8Deep>(); }

}  // namespace quire::gpu
