#include "core/model/tensor_rows.h"

#include <cstring>
#include <span>
#include <utility>

#include "core/backend/weights/blocks.h"
#include "core/base/check.h"

namespace quire::model {

TensorRows::TensorRows(const Tensor& tensor, const TensorPart& part, TensorEntry::Kind kind, bool widens)
    : format_(*tensor.stored_format()) {
  const bool whole = kind != TensorEntry::Kind::kMatrix;
  const std::uint64_t count = part.matrix == TensorPart::kOnly ? 1 : tensor.shape.front();
  const std::size_t size = tensor.data.size() / count;
  const FileBytes own = tensor.data.subspan(part.index() * size, size);
  const std::uint64_t num_elements = tensor.num_elements() / count;
  num_rows_ = whole && part.rows == 0 ? num_elements : part.rows_in_file();
  row_bytes_ = size / (whole ? num_elements : part.all_rows());
  if (part.transposed) transpose(own, size / num_elements, part);
  if (!tensor.scales.empty()) {
    const std::size_t scales = tensor.scales.size() / count;
    join_scales(own, tensor.scales.subspan(part.index() * scales, scales));
    row_bytes_ = backend::stored_bytes(format_, part.inputs());
  }
  const FileBytes all = whole_.empty() ? own : FileBytes(whole_);
  if (part.run != 0) {
    gather_runs(all, part);
  } else {
    bytes_ = all.subspan(part.first_row * row_bytes_, num_rows_ * row_bytes_);
  }
  if (part.turned != 0) reorder(part);
  if (part.copies != 1) copy_heads(part);
  if (!format_.is_blocks()) return;
  CHECK(!whole && !part.transposed);
  if (!widens) return;
  widened_.resize(num_rows_ * part.inputs());
  backend::widen_blocks(format_.blocks, stored().data(), widened_);
  for (float& number : widened_) number *= tensor.factor(part.index());
  format_ = backend::Format::kF32;
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

// Blocks of 32 inputs as a GGUF file has them: the scale, then codes i and i + 16 in a byte.
void TensorRows::join_scales(FileBytes codes, FileBytes scales) {
  whole_.reserve(codes.size() + scales.size());
  const auto code = [&](std::size_t input) { return codes[input / 2] >> (input % 2 * 4) & std::byte{15}; };
  for (std::size_t block = 0; block < scales.size(); ++block) {
    whole_.push_back(scales[block]);
    for (std::size_t i = 32 * block; i < 32 * block + 16; ++i) whole_.push_back(code(i) | code(i + 16) << 4);
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
