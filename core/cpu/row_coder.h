// Rows of a linear layer's input in fewer bits, coded once for all outputs: int8 for w8a8, w4a8 and blocks, bf16 for
// w16a16. Rows for a weight with columns are put into their order first; as f32 they have no other code.
// Shape   at most max_rows rows; for every row its codes and, for int8, its groups of 256, or runs of 32 for blocks
//         (isa/kernels.h).
// Owner   CpuOps; holds the codes of one linear layer's input at a time.
// Thread  reserve(): engine, while starting. The others: any worker; different rows at a time.
// Fails   reserve(): StartError, out of memory. More rows or inputs than there is room for are our bug: CHECK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/isa/kernels.h"
#include "core/cpu/memory.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

class RowCoder {
 public:
  explicit RowCoder(std::uint32_t max_rows) : max_rows_(max_rows) {}

  // Makes room for rows of the weight. Called when the weight is made, so that no step allocates.
  void reserve(const PackedWeight& w);
  // Makes room for so many rows instead of the number that it was made for, if these are more.
  void reserve_rows(std::uint32_t max_rows);
  void code_row(const Kernels& kernels, const PackedWeight& w, const HostBuffer& x, std::uint32_t row);
  // The rows from `first` on, as coded last.
  CodedRows rows(const PackedWeight& w, std::uint32_t first) const;
  // Likewise of a weight with columns that takes them as f32; rows are code_stride bytes apart.
  static bool are_floats(const PackedWeight& w);

 private:
  std::uint32_t max_rows_;
  std::size_t code_stride_ = 0;    // bytes reserved per row
  std::size_t scale_bytes_ = 0;    // of groups or runs, reserved per row
  std::size_t ordered_bytes_ = 0;  // of a row in the order of columns, reserved per row
  Memory codes_;
  Memory scales_;
  Memory ordered_;
};

}  // namespace quire::cpu
