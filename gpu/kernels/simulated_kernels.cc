#include "gpu/kernels/table.h"

namespace quire::gpu {
namespace {

template <typename Kernel>
void thread_of(const void* args, std::byte* shared) {
  Kernel::run(*static_cast<const typename Kernel::Args*>(args), shared);
}

template <typename Kernel>
Entry<Kernel> entry() {
  return {reinterpret_cast<const void*>(&thread_of<Kernel>)};
}

}  // namespace

const KernelTable& simulated_kernels() {
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
