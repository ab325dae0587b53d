// The kernels as something that can be started: one table for each machine that runs them.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/attention.h"
#include "gpu/kernels/attention_tiles.h"
#include "gpu/kernels/choose_walks.h"
#include "gpu/kernels/entry.h"
#include "gpu/kernels/exchange.h"
#include "gpu/kernels/linear_table.h"
#include "gpu/kernels/merge_spans.h"
#include "gpu/kernels/rope_store.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

struct KernelTable {
  Entry<Embed> embed;
  Entry<Norm> norm;
  Entry<ActMul> act_mul;
  Entry<Add> add;
  Entry<CopyRows> copy_rows;
  LinearTable linear;
  Entry<RopeStore> rope_store;
  Entry<SetAside> set_aside;
  Entry<StoreGroups> store_groups;
  Entry<CopyKvRow> copy_kv_row;
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
  Entry<ChooseWalks> choose_walks;
  Entry<AllReduce> all_reduce;
  Entry<AllGather> all_gather;
  Entry<PlaceGathered> place_gathered;
};

const KernelTable& cuda_kernels();  // where nvcc built it

}  // namespace quire::gpu
