// Entries of all kernels: one table for each machine that runs them.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/attention.h"
#include "gpu/kernels/attention_tiles.h"
#include "gpu/kernels/choose/choose_verified.h"
#include "gpu/kernels/collective.h"
#include "gpu/kernels/entry.h"
#include "gpu/kernels/linear_table.h"
#include "gpu/kernels/merge_spans.h"
#include "gpu/kernels/rope_store.h"
#include "gpu/kernels/routes.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

struct KernelTable {
  Entry<Embed> embed;
  Entry<NormRows> norm;
  Entry<Activate> activate;
  Entry<Add> add;
  Entry<Rescale> rescale;
  Entry<Clip> clip;
  Entry<MatchLength> match_length;
  Entry<CutBelow> cut_below;
  Entry<MixStreams> mix_streams;
  Entry<CorrectStreams> correct_streams;
  Entry<CopyRows> copy_rows;
  Entry<CopyBytes> copy_bytes;
  Entry<RouteRows> route_rows;
  Entry<IndexRoutes> index_routes;
  Entry<ActivateClamped> activate_clamped;
  Entry<CombineExperts> combine_experts;
  LinearTable linear;
  Entry<RopeStore> rope_store;
  Entry<SetAside> set_aside;
  Entry<StoreGroups> store_groups;
  Entry<CopyKvRows> copy_kv_rows;
  Entry<CopyKvBlocks> copy_kv_blocks;
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
  Entry<PrepareRows> prepare_rows;
  Entry<ChooseVerified> choose_verified;
  Entry<AllReduce> all_reduce;
  Entry<AllGather> all_gather;
  Entry<PlaceGathered> place_gathered;
};

// fill(entry) sets one entry; linear layers are filled apart.
template <typename Fill>
KernelTable other_kernels(const Fill& fill) {
  KernelTable table;
  const auto fill_all = [&](auto&... entries) { (fill(entries), ...); };
  fill_all(table.embed, table.norm, table.activate, table.add, table.rescale, table.clip, table.match_length,
           table.cut_below, table.mix_streams, table.correct_streams, table.copy_rows, table.copy_bytes,
           table.route_rows, table.index_routes, table.activate_clamped, table.combine_experts, table.rope_store,
           table.set_aside, table.store_groups, table.copy_kv_rows, table.copy_kv_blocks, table.attend,
           table.attend_bf16, table.attend_bf16_wide, table.attend_fp8, table.attend_fp8_wide, table.attend_int8,
           table.attend_int8_wide, table.attend_int4, table.attend_int4_wide, table.merge_spans, table.prepare_rows,
           table.choose_verified, table.all_reduce, table.all_gather, table.place_gathered);
  return table;
}

// Hash of the facts that a launching program assumes: sizes of arguments, thread blocks and shared memory. Device code
// that was compiled apart (QUIRE_GPU_ONLY) must have the same.
inline std::uint64_t launch_facts() {
  std::uint64_t facts = 0;
  const auto mix = [&]<typename Kernel>(Entry<Kernel>&) {
    for (const std::uint64_t fact :
         {sizeof(typename Kernel::Args), std::size_t{Kernel::kThreads}, shared_bytes_of<Kernel>()}) {
      facts = (facts ^ fact) * 0x9e3779b97f4a7c15u;
      facts ^= facts >> 29;
    }
  };
  other_kernels(mix);
  linear_table(mix);
  warpgroup_table(mix);
  return facts;
}

const KernelTable& cuda_kernels();  // defined if nvcc built the kernels
std::uint64_t cuda_launch_facts();  // launch_facts() when nvcc built them

}  // namespace quire::gpu
