// Rows of a linear's input as whole numbers of 8 bits, once for all outputs: for weights multiplied in integers.
// Shape   at most max_rows rows; of every row the codes, 256 to a group, and the groups (isa/kernels.h).
// Owner   CpuOps; the codes are those of one linear's input at a time.
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

  // Room for rows of k inputs: when a weight that wants them is made, so that no step allocates.
  void reserve(std::uint32_t k);
  void quantize_row(const Kernels& kernels, const HostBuffer& x, std::uint32_t row);
  // From row `first` on, of k inputs each, as they were quantised last.
  CodedRows rows(std::uint32_t first, std::uint32_t k) const;

 private:
  std::uint32_t max_rows_;
  std::uint32_t num_groups_ = 0;  // of a row that there is room for
  Memory codes_;
  Memory groups_;
};

}  // namespace quire::cpu
