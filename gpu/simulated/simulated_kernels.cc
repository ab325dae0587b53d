#include "gpu/simulated/simulated_kernels.h"

namespace quire::gpu {
namespace {

template <typename Kernel>
void thread_of(const void* args, std::byte* shared) {
  run_in_turn<Kernel>(*static_cast<const typename Kernel::Args*>(args), shared);
}

template <typename Kernel>
Entry<Kernel> entry() {
  return {reinterpret_cast<const void*>(&thread_of<Kernel>)};
}

template <typename Kernel>
void fill(Entry<Kernel>& to) {
  to = entry<Kernel>();
}
LinearTable all_of_linear() {
  LinearTable table = linear_table([](auto& to) { fill(to); });
  table.warpgroups = warpgroup_table([](auto& to) { fill(to); });
  return table;
}

}  // namespace

const KernelTable& simulated_kernels() {
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
