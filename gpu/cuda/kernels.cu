#include "gpu/kernels/table.h"

namespace quire::gpu {
namespace {

extern __shared__ std::byte shared[];

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, min_blocks_of<Kernel>())
    enter(const __grid_constant__ typename Kernel::Args args) {
  Kernel::run(args, shared);
}

template <typename Kernel>
Entry<Kernel> entry() {
  return {reinterpret_cast<const void*>(&enter<Kernel>)};
}

template <typename Kernel>
void fill(Entry<Kernel>& to) {
  to = entry<Kernel>();
}
LinearTable all_of_linear() {
  return linear_table([](auto& to) { fill(to); });
}

}  // namespace

const KernelTable& cuda_kernels() {
  static const KernelTable table{
      entry<Embed>(),          entry<Norm>(),        entry<ActMul>(),         entry<Add>(),
      entry<CopyRows>(),       all_of_linear(),      entry<RopeStore>(),      entry<SetAside>(),
      entry<StoreGroups>(),    entry<CopyKvRow>(),   entry<Attend>(),         entry<AttendBf16>(),
      entry<AttendBf16Wide>(), entry<AttendFp8>(),   entry<AttendFp8Wide>(),  entry<AttendInt8>(),
      entry<AttendInt8Wide>(), entry<AttendInt4>(),  entry<AttendInt4Wide>(), entry<MergeSpans>(),
      entry<PrepareRows>(),    entry<ChooseWalks>(), entry<AllReduce>(),      entry<AllGather>(),
      entry<PlaceGathered>()};
  return table;
}

}  // namespace quire::gpu
