#include "core/model/tensor_rows.h"

#include <cstring>
#include <span>
#include <utility>

#include "core/backend/weights/quantize.h"
#include "core/base/check.h"

namespace quire::model {

backend::Format given_format(const Tensor& tensor, const std::function<bool(backend::Format)>& takes) {
  const backend::Format own = *tensor.stored_format();
  const bool in_integers = own.is_blocks() && !backend::layout_of(own.blocks).is_in_floats();
  // A device that multiplies blocks of a file in integers, but these ones in f32 alone, is given the former.
  const auto best = in_integers ? backend::Format::of_blocks(own.blocks, backend::Format::Activation::kInt8) : own;
  if (!tensor.coded || takes(best)) return own;
  // Without data, a plan takes it that scales are f16s.
  const auto like = own.is_blocks() ? backend::file_type_like(own.blocks) : std::nullopt;
  const auto planned = like ? std::optional(backend::Format::of_blocks(*like)) : std::nullopt;
  const auto blocks = tensor.matrix == nullptr ? planned : tensor.matrix->block_format();
  return blocks && takes(*blocks) ? *blocks : own;
}

TensorRows::TensorRows(const Tensor& tensor, const TensorPart& part, TensorEntry::Kind kind, bool widens,
                       LastRead* last_read, std::optional<backend::Format> stored_as)
    : format_(stored_as ? *stored_as : *tensor.stored_format()), factor_(tensor.factor(part.index())) {
  const bool whole = kind != TensorEntry::Kind::kMatrix;
  CHECK(!whole || !tensor.coded);
  const std::uint64_t count = part.matrix == TensorPart::kOnly ? 1 : tensor.shape.front();
  const std::uint64_t num_elements = tensor.num_elements() / count;
  num_rows_ = whole && part.rows == 0 ? num_elements : part.rows_in_file();
  const std::uint64_t file_inputs = part.transposed ? part.all_rows() : part.inputs();  // of a matrix
  FileBytes own;
  if (tensor.matrix != nullptr) {
    own = read_coded(tensor, part, last_read);
    row_bytes_ = backend::row_bytes(format_, file_inputs);
  } else {
    const std::size_t size = tensor.data.size() / count;
    own = tensor.data.subspan(part.index() * size, size);
    row_bytes_ = size / (whole ? num_elements : num_elements / file_inputs);
  }
  if (part.transposed && tensor.coded) {
    const FileBytes rows = own.subspan(part.first_input * row_bytes_, part.inputs() * row_bytes_);
    const std::vector<float> numbers = widened(tensor, rows, part.inputs(), file_inputs);
    format_ = backend::Format::kF32;
    transpose(reinterpret_cast<const std::byte*>(numbers.data()), sizeof(float), part);
  } else if (part.transposed) {
    transpose(own.data() + part.first_input * row_bytes_, row_bytes_ / file_inputs, part);
  }
  const FileBytes all = whole_.empty() ? own : FileBytes(whole_);
  if (part.run != 0) {
    gather_runs(all, part);
  } else {
    bytes_ = all.subspan(part.first_row * row_bytes_, num_rows_ * row_bytes_);
  }
  if (part.turned != 0) reorder(part);
  if (part.copies != 1) copy_heads(part);
  if (!widens || format_ == backend::Format::kF32) return;
  widened_ = widened(tensor, stored(), num_rows_, part.inputs());
  format_ = backend::Format::kF32;
}

FileBytes TensorRows::read_coded(const Tensor& tensor, const TensorPart& part, LastRead* last_read) {
  const bool is_last =
      last_read != nullptr && last_read->matrix == tensor.matrix.get() && last_read->index == part.index();
  if (is_last) {
    coded_ = last_read->rows;
    return *coded_;
  }
  const std::uint64_t rows = tensor.shape[tensor.shape.size() - 2];
  std::vector<std::byte> bytes(rows * backend::row_bytes(format_, tensor.shape.back()));
  tensor.matrix->read(part.index(), format_, bytes);
  coded_ = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  if (last_read != nullptr) *last_read = {tensor.matrix.get(), part.index(), coded_};
  return *coded_;
}

std::vector<float> TensorRows::widened(const Tensor& tensor, FileBytes rows, std::uint64_t count,
                                       std::uint64_t inputs) const {
  std::vector<float> out(count * inputs);
  const float factor = factor_;
  for (std::uint64_t row = 0; row < count; ++row) {
    const std::span<float> numbers = std::span(out).subspan(row * inputs, inputs);
    backend::widen_row(rows.data() + row * row_bytes_, format_, numbers);
    put_in_order(tensor.columns(), numbers);
    for (float& number : numbers) number *= factor;
  }
  return out;
}

void TensorRows::put_in_order(std::span<const std::uint32_t> columns, std::span<float> row) {
  if (columns.empty()) return;
  const std::vector<float> stored(row.begin(), row.end());
  for (std::size_t i = 0; i < stored.size(); ++i) row[columns[i]] = stored[i];
}

FileBytes TensorRows::bytes() const { return widened_.empty() ? stored() : std::as_bytes(std::span(widened_)); }

void TensorRows::transpose(const std::byte* from, std::size_t size, const TensorPart& part) {
  row_bytes_ = part.inputs() * size;
  whole_.resize(part.all_rows() * row_bytes_);
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
