#include "core/model/tensor_rows.h"

#include <cstring>
#include <span>
#include <utility>

#include "core/backend/weights/quantize.h"
#include "core/base/check.h"

namespace quire::model {

TensorRows::TensorRows(const Tensor& tensor, const TensorPart& part, TensorEntry::Kind kind, bool widens)
    : format_(*tensor.stored_format()) {
  const bool whole = kind != TensorEntry::Kind::kMatrix;
  const std::uint64_t count = part.matrix == TensorPart::kOnly ? 1 : tensor.shape.front();
  const std::uint64_t num_elements = tensor.num_elements() / count;
  num_rows_ = whole && part.rows == 0 ? num_elements : part.rows_in_file();
  FileBytes own;
  if (tensor.matrix != nullptr) {
    row_bytes_ = backend::row_bytes(format_, part.inputs());
    whole_.resize(part.all_rows() * row_bytes_);
    tensor.matrix->read(part.index(), whole_);
  } else {
    const std::size_t size = tensor.data.size() / count;
    own = tensor.data.subspan(part.index() * size, size);
    row_bytes_ = size / (whole ? num_elements : part.all_rows());
    if (part.transposed) transpose(own, size / num_elements, part);
  }
  const FileBytes all = whole_.empty() ? own : FileBytes(whole_);
  if (part.run != 0) {
    gather_runs(all, part);
  } else {
    bytes_ = all.subspan(part.first_row * row_bytes_, num_rows_ * row_bytes_);
  }
  if (part.turned != 0) reorder(part);
  if (part.copies != 1) copy_heads(part);
  if (!tensor.coded) return;
  CHECK(!whole && !part.transposed);
  if (!widens) return;
  widened_.resize(num_rows_ * part.inputs());
  for (std::uint64_t row = 0; row < num_rows_; ++row) {
    const std::span<float> numbers = std::span(widened_).subspan(row * part.inputs(), part.inputs());
    backend::widen_row(stored().data() + row * row_bytes_, format_, numbers);
    put_in_order(tensor.columns(), numbers);
    for (float& number : numbers) number *= tensor.factor(part.index());
  }
  format_ = backend::Format::kF32;
}

void TensorRows::put_in_order(std::span<const std::uint32_t> columns, std::span<float> row) {
  if (columns.empty()) return;
  const std::vector<float> stored(row.begin(), row.end());
  for (std::size_t i = 0; i < stored.size(); ++i) row[columns[i]] = stored[i];
}

FileBytes TensorRows::bytes() const { return widened_.empty() ? stored() : std::as_bytes(std::span(widened_)); }

void TensorRows::transpose(FileBytes own, std::size_t size, const TensorPart& part) {
  row_bytes_ = part.inputs() * size;
  whole_.resize(part.all_rows() * row_bytes_);
  const std::byte* from = own.data() + part.first_input * part.all_rows() * size;
  for (std::uint64_t input = 0; input < part.inputs(); ++input) {
    for (std::uint64_t row = 0; row < part.all_rows(); ++row, from += size) {
      std::memcpy(whole_.data() + row * row_bytes_ + input * size, from, size);
    }
  }
}

void TensorRows::gather_runs(FileBytes all, const TensorPart& part) {
  ordered_.reserve(num_rows_ * row_bytes_);
  for (std::uint64_t row = part.first_row; ordered_.size() < num_rows_ * row_bytes_; row += part.stride) {
    const FileBytes run = all.subspan(row * row_bytes_, part.run * row_bytes_);
    ordered_.insert(ordered_.end(), run.begin(), run.end());
  }
}

// Pairs (2i, 2i+1) become (i, i + turned/2).
void TensorRows::reorder(const TensorPart& part) {
  const std::vector<std::byte> pairs(stored().begin(), stored().end());
  ordered_ = pairs;
  for (std::uint64_t head = 0; head < num_rows_; head += part.head_rows) {
    for (std::uint32_t i = 0; i < part.turned; ++i) {
      const std::uint64_t to = head + i / 2 + i % 2 * (part.turned / 2);
      std::memcpy(ordered_.data() + to * row_bytes_, pairs.data() + (head + i) * row_bytes_, row_bytes_);
    }
  }
}

void TensorRows::copy_heads(const TensorPart& part) {
  const FileBytes heads = stored();
  const std::size_t head_bytes = part.head_rows * row_bytes_;
  std::vector<std::byte> copied;
  copied.reserve(heads.size() * part.copies);
  for (std::size_t at = 0; at < heads.size(); at += head_bytes) {
    for (std::uint32_t i = 0; i < part.copies; ++i) {
      copied.insert(copied.end(), heads.begin() + static_cast<std::ptrdiff_t>(at),
                    heads.begin() + static_cast<std::ptrdiff_t>(at + head_bytes));
    }
  }
  ordered_ = std::move(copied);
  num_rows_ *= part.copies;
}

}  // namespace quire::model
