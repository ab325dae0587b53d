// Matrices whose numbers lie in several tensors of a file, codes in one and scales in others, as rows of one format
// (core/model/quantized).
// Owner   borrows the mapped files, which must outlive the object.
// Thread  one, at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/weights/format.h"
#include "core/model/source/mapped_file.h"

namespace quire::model {

class CodedMatrix {
 public:
  virtual ~CodedMatrix() = default;

  // All rows of one of the tensor's matrices, of backend::row_bytes() each, in the tensor's stored_format() or in
  // block_format(). StartError: a scale that is not a finite number, naming its tensor.
  virtual void read(std::uint64_t matrix, backend::Format format, std::span<std::byte> rows) const = 0;
  // Blocks of a GGUF file that hold the same numbers, for devices that do not take the stored format. Nothing: there
  // are none, as where a scale is no f16.
  virtual std::optional<backend::Format> block_format() const { return std::nullopt; }
  // True: the checkpoint declares that its inputs are int8 with one scale for a row.
  virtual bool takes_int8_rows() const { return false; }
  // The bytes of the tensors that it reads.
  const std::vector<FileBytes>& parts() const { return parts_; }
  // Settings beside the tensors that decide its numbers, for the digest.
  virtual std::string settings() const { return {}; }
  // Input i of read()'s rows is input columns()[i] of the matrix. Empty: input i.
  const std::vector<std::uint32_t>& columns() const { return columns_; }

 protected:
  explicit CodedMatrix(std::vector<FileBytes> parts, std::vector<std::uint32_t> columns = {})
      : parts_(std::move(parts)), columns_(std::move(columns)) {}

 private:
  std::vector<FileBytes> parts_;
  std::vector<std::uint32_t> columns_;
};

}  // namespace quire::model
