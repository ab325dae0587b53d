// The rows of a matrix, or the values of a vector, that an entry of the table asks for, in its order: a range of rows
// or runs of them, heads turned from pairs to halves or copied, a transposed file's columns, one matrix of several.
// Blocks and codes with their scales stay, or are widened.
// Shape   bytes(): size() rows of row_bytes() of format(). Inputs of coded ones that stay are in the order of
//         Tensor::columns().
// Owner   borrows the tensor's data, which must outlive the object.
// Thread  one, at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/weights/format.h"
#include "core/model/source/safetensors.h"
#include "core/model/tensor_table.h"

namespace quire::model {

// The format in which a device is given a tensor's rows: its own, or blocks of a GGUF file if it takes only these.
backend::Format given_format(const Tensor& tensor, const std::function<bool(backend::Format)>& takes);

// The rows of the coded matrix that was read last: parts of one matrix often come one after another.
struct LastRead {
  const CodedMatrix* matrix = nullptr;
  std::uint64_t index = 0;
  std::shared_ptr<const std::vector<std::byte>> rows{};
};

class TensorRows {
 public:
  // `tensor` has been checked against the table: its stored_format() is known. widens: to f32, as coded
  // ones that are transposed always are.
  // stored: of a coded matrix stored_format(), which an empty one is, or CodedMatrix::block_format().
  TensorRows(const Tensor& tensor, const TensorPart& part, TensorEntry::Kind kind, bool widens = false,
             LastRead* last_read = nullptr, std::optional<backend::Format> stored = std::nullopt);

  std::uint64_t size() const { return num_rows_; }
  FileBytes bytes() const;
  backend::Format format() const { return format_; }

 private:
  FileBytes stored() const { return ordered_.empty() ? bytes_ : FileBytes(ordered_); }
  FileBytes read_coded(const Tensor& tensor, const TensorPart& part, LastRead* last_read);
  // Of a coded matrix the rows of the file from `first` on, as f32.
  std::vector<float> widened(const Tensor& tensor, FileBytes rows, std::uint64_t count, std::uint64_t inputs) const;
  // from: the file's row that is the first input; size: bytes of an element.
  void transpose(const std::byte* from, std::size_t size, const TensorPart& part);
  void gather_runs(FileBytes all, const TensorPart& part);
  void reorder(const TensorPart& part);
  static void put_in_order(std::span<const std::uint32_t> columns, std::span<float> row);
  void copy_heads(const TensorPart& part);

  backend::Format format_;
  float factor_;  // of its coded numbers
  std::uint64_t num_rows_ = 0;
  std::size_t row_bytes_ = 0;
  FileBytes bytes_;
  std::shared_ptr<const std::vector<std::byte>> coded_;  // a matrix that does not lie in the file as it is read
  std::vector<std::byte> whole_;                         // the matrix, if it is transposed
  std::vector<std::byte> ordered_;
  std::vector<float> widened_;  // of coded numbers, where they are
};

}  // namespace quire::model
