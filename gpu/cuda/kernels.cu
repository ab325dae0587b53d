#include "gpu/cuda/enter.h"
#include "gpu/cuda/linear_kernels.h"
#include "gpu/cuda/sm90a_kernels.h"
#include "gpu/kernels/table.h"

namespace quire::gpu {
namespace {

LinearTable all_of_linear() {
  LinearTable table = linear_kernels();
  table.warpgroups = linear_warpgroups();
  return table;
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
