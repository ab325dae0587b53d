#include "gpu/kernels/table.h"

namespace quire::gpu {
namespace {

extern __shared__ std::byte shared[];

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) enter(const __grid_constant__ typename Kernel::Args args) {
  Kernel::run(args, shared);
}

template <typename Kernel>
Entry<Kernel> entry() {
  return {reinterpret_cast<const void*>(&enter<Kernel>)};
}

}  // namespace

const KernelTable& cuda_kernels() {
  static const KernelTable table{
      entry<Embed>(),          entry<Norm>(),       entry<ActMul>(),         entry<Add>(),
      entry<CopyRows>(),       entry<RoundRows>(),  entry<LinearDot>(),      entry<LinearTiles>(),
      entry<RopeStore>(),      entry<SetAside>(),   entry<StoreGroups>(),    entry<CopyKvRow>(),
      entry<Attend>(),         entry<AttendBf16>(), entry<AttendBf16Wide>(), entry<AttendFp8>(),
      entry<AttendFp8Wide>(),  entry<AttendInt8>(), entry<AttendInt8Wide>(), entry<AttendInt4>(),
      entry<AttendInt4Wide>(), entry<MergeSpans>()};
  return table;
}

}  // namespace quire::gpu
