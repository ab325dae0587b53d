// Entries of the linear-layer kernels: those of linear_grid.h for each weight type.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/entry.h"
#include "gpu/kernels/linear.h"
#include "gpu/kernels/linear_dot.h"
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
};

// Kernels for many rows. linear_table() does not fill them, because not every machine has them.
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

struct LinearTable {
  Entry<LinearDot> dot;
  Entry<PutInBf16> put_in_bf16;
  Entry<PutInIntegers> put_in_integers;
  LinearEntries<Bf16Form> bf16;
  LinearEntries<Int8Form> int8;
  LinearEntries<Fp8Form> fp8;
  LinearEntries<Int4Form> int4;
  LinearEntries<W8A8Form> w8a8;
  LinearEntries<W4A8Form> w4a8;
  WarpgroupTable warpgroups;
};

// fill(entry) sets one.
template <typename Fill>
LinearTable linear_table(const Fill& fill) {
  LinearTable table;
  fill(table.dot);
  fill(table.put_in_bf16);
  fill(table.put_in_integers);
  const auto fill_all = [&](auto& entries) {
    fill(entries.split_1_1);
    fill(entries.split_1_2);
    fill(entries.split_2_1);
    fill(entries.split_2_2);
    fill(entries.split_4_2);
    fill(entries.wide);
  };
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
