// Entries of the linear-layer kernels: those of linear_grid.h for each weight type.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/entry.h"
#include "gpu/kernels/linear.h"
#include "gpu/kernels/linear_dot.h"
#include "gpu/kernels/linear_experts.h"
#include "gpu/kernels/linear_rows.h"
#include "gpu/kernels/linear_split.h"
#include "gpu/kernels/linear_warpgroups.h"

namespace quire::gpu {

template <typename Form>
struct LinearEntries {
  Entry<LinearSplit<Form, 1, 1>> split_1_1;  // row tiles, output tiles
  Entry<LinearSplit<Form, 1, 2>> split_1_2;
  Entry<LinearSplit<Form, 2, 1>> split_2_1;
  Entry<LinearSplit<Form, 2, 2>> split_2_2;
  Entry<LinearSplit<Form, 4, 2>> split_4_2;
  Entry<LinearWide<Form>> wide;
  Entry<LinearByExpert<Form>> by_expert;
};

// Kernels for many rows.
template <typename Form>
struct WarpgroupEntries {
  Entry<LinearWarpgroups<Form, kManyTiles, kRowBlock>> many_tiles;
  Entry<LinearWarpgroups<Form, kFewTiles, kRowBlock>> few_tiles;
  Entry<LinearWarpgroups<Form, kManyTiles, kHalfRowBlock>> many_tiles_half;  // up to kHalfRowBlock rows
  Entry<LinearWarpgroups<Form, kFewTiles, kHalfRowBlock>> few_tiles_half;
};
struct WarpgroupTable {
  WarpgroupEntries<Bf16Form> bf16;
  WarpgroupEntries<Int8Form> int8;
  WarpgroupEntries<Fp8Form> fp8;
  WarpgroupEntries<Int4Form> int4;
};

// Blocks: those of files times int8, of FP8 times bf16.
template <backend::BlockType kType>
using BlockEntries = LinearEntries<BlockForm<kType>>;
template <backend::BlockType kType>
using Fp8BlockEntries = LinearEntries<Fp8BlockForm<kType>>;
struct BlockTable {
  BlockEntries<backend::BlockType::kQ4_0> q4_0;
  BlockEntries<backend::BlockType::kQ4_1> q4_1;
  BlockEntries<backend::BlockType::kQ5_0> q5_0;
  BlockEntries<backend::BlockType::kQ5_1> q5_1;
  BlockEntries<backend::BlockType::kQ8_0> q8_0;
  BlockEntries<backend::BlockType::kQ2_K> q2_k;
  BlockEntries<backend::BlockType::kQ3_K> q3_k;
  BlockEntries<backend::BlockType::kQ4_K> q4_k;
  BlockEntries<backend::BlockType::kQ5_K> q5_k;
  BlockEntries<backend::BlockType::kQ6_K> q6_k;
  BlockEntries<backend::BlockType::kIQ4_NL> iq4_nl;
  BlockEntries<backend::BlockType::kIQ4_XS> iq4_xs;
  BlockEntries<backend::BlockType::kMXFP4> mxfp4;
  BlockEntries<backend::BlockType::kNVFP4> nvfp4;
  Fp8BlockEntries<backend::BlockType::kFp8G32> fp8_g32;
  Fp8BlockEntries<backend::BlockType::kFp8G64> fp8_g64;  // also of groups of 128
};

struct LinearTable {
  Entry<LinearDot> dot;
  Entry<LinearDotOfBlocks> dot_of_blocks;
  Entry<LinearDotByExpert<PlainNumbers>> dot_by_expert;
  Entry<LinearDotByExpert<BlockNumbers>> dot_of_blocks_by_expert;
  Entry<PutInBf16> put_in_bf16;
  Entry<PutInIntegers> put_in_integers;
  Entry<PutForBlocks> put_for_blocks;
  LinearEntries<Bf16Form> bf16;
  LinearEntries<Int8Form> int8;
  LinearEntries<Fp8Form> fp8;
  LinearEntries<Int4Form> int4;
  LinearEntries<W8A8Form> w8a8;
  LinearEntries<W4A8Form> w4a8;
  BlockTable blocks;          // of block_table()
  WarpgroupTable warpgroups;  // of warpgroup_table(): not every machine has them
};

// fill(entry) sets one.
template <typename Fill, typename Form>
void fill_entries(const Fill& fill, LinearEntries<Form>& entries) {
  fill(entries.split_1_1);
  fill(entries.split_1_2);
  fill(entries.split_2_1);
  fill(entries.split_2_2);
  fill(entries.split_4_2);
  fill(entries.wide);
  fill(entries.by_expert);
}

template <typename Fill>
BlockTable block_table(const Fill& fill) {
  BlockTable table;
  fill_entries(fill, table.q4_0);
  fill_entries(fill, table.q4_1);
  fill_entries(fill, table.q5_0);
  fill_entries(fill, table.q5_1);
  fill_entries(fill, table.q8_0);
  fill_entries(fill, table.q2_k);
  fill_entries(fill, table.q3_k);
  fill_entries(fill, table.q4_k);
  fill_entries(fill, table.q5_k);
  fill_entries(fill, table.q6_k);
  fill_entries(fill, table.iq4_nl);
  fill_entries(fill, table.iq4_xs);
  fill_entries(fill, table.mxfp4);
  fill_entries(fill, table.nvfp4);
  fill_entries(fill, table.fp8_g32);
  fill_entries(fill, table.fp8_g64);
  return table;
}

template <typename Fill>
LinearTable linear_table(const Fill& fill) {
  LinearTable table;
  fill(table.dot);
  fill(table.dot_of_blocks);
  fill(table.dot_by_expert);
  fill(table.dot_of_blocks_by_expert);
  fill(table.put_in_bf16);
  fill(table.put_in_integers);
  fill(table.put_for_blocks);
  const auto fill_all = [&](auto& entries) { fill_entries(fill, entries); };
  fill_all(table.bf16);
  fill_all(table.int8);
  fill_all(table.fp8);
  fill_all(table.int4);
  fill_all(table.w8a8);
  fill_all(table.w4a8);
  return table;
}

template <typename Fill>
WarpgroupTable warpgroup_table(const Fill& fill) {
  WarpgroupTable table;
  const auto fill_all = [&](auto& entries) {
    fill(entries.many_tiles);
    fill(entries.few_tiles);
    fill(entries.many_tiles_half);
    fill(entries.few_tiles_half);
  };
  fill_all(table.bf16);
  fill_all(table.int8);
  fill_all(table.fp8);
  fill_all(table.int4);
  return table;
}

}  // namespace quire::gpu
