// The rows of a matrix, or the values of a vector, that an entry of the table asks for, in its order: a range of rows
// or runs of them, heads turned from pairs to halves or copied, a transposed file's columns, one matrix of several.
// Blocks stay, or are widened.
// Shape   bytes(): size() rows of inputs() numbers of format().
// Owner   borrows the tensor's data, which must outlive the object.
// Thread  one, at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend/weights/format.h"
#include "core/model/source/safetensors.h"
#include "core/model/tensor_table.h"

namespace quire::model {

class TensorRows {
 public:
  // `tensor` has been checked against the table: its stored_format() is known. widens: blocks to f32.
  TensorRows(const Tensor& tensor, const TensorPart& part, TensorEntry::Kind kind, bool widens = false);

  std::uint64_t size() const { return num_rows_; }
  FileBytes bytes() const;
  backend::Format format() const { return format_; }

 private:
  FileBytes stored() const { return ordered_.empty() ? bytes_ : FileBytes(ordered_); }
  void transpose(FileBytes own, std::size_t size, const TensorPart& part);  // size: bytes of an element
  void join_scales(FileBytes codes, FileBytes scales);
  void gather_runs(FileBytes all, const TensorPart& part);
  void reorder(const TensorPart& part);
  void copy_heads(const TensorPart& part);

  backend::Format format_;
  std::uint64_t num_rows_ = 0;
  std::size_t row_bytes_ = 0;
  FileBytes bytes_;
  std::vector<std::byte> whole_;  // the matrix, if it is not as the file has it
  std::vector<std::byte> ordered_;
  std::vector<float> widened_;  // of blocks, where they are
};

}  // namespace quire::model
