#include "core/cpu/row_coder.h"

#include "core/base/check.h"

namespace quire::cpu {
namespace {

constexpr std::uint32_t kRunInputs = 32;

bool is_rounded(const PackedWeight& w) { return w.format().activation == backend::Format::Activation::kBF16; }
bool has_runs(const PackedWeight& w) { return w.format().is_blocks(); }

// Groups or runs of a row.
std::uint32_t num_scales_of(const PackedWeight& w) {
  if (is_rounded(w) || RowCoder::are_floats(w)) return 0;
  const std::uint32_t inputs = has_runs(w) ? kRunInputs : kCodedGroup;
  return (w.k() + inputs - 1) / inputs;
}
std::size_t scale_bytes_of(const PackedWeight& w) {
  return num_scales_of(w) * (has_runs(w) ? sizeof(CodedRun) : sizeof(CodedGroup));
}

std::size_t ordered_bytes_of(const PackedWeight& w) {
  return w.columns() == nullptr || RowCoder::are_floats(w) ? 0 : std::size_t{w.k()} * sizeof(float);
}

// One cache line more than needed, because rows whose length is a power of two would share a few sets of L1.
std::size_t code_stride_of(const PackedWeight& w) {
  const std::size_t floats = (std::size_t{w.k()} * sizeof(float) + 63) / 64 * 64;
  const std::size_t coded = (std::size_t{w.k()} + kCodedGroup - 1) / kCodedGroup * kCodedGroup;
  return (is_rounded(w) || RowCoder::are_floats(w) ? floats : coded) + 64;
}

}  // namespace

bool RowCoder::are_floats(const PackedWeight& w) {
  return w.columns() != nullptr && w.format().activation == backend::Format::Activation::kF32;
}

void RowCoder::reserve(const PackedWeight& w) {
  if (const std::size_t stride = code_stride_of(w); stride > code_stride_) {
    code_stride_ = stride;
    codes_ = Memory(max_rows_ * stride, "rows as codes");
  }
  if (const std::size_t bytes = scale_bytes_of(w); bytes > scale_bytes_) {
    scale_bytes_ = bytes;
    scales_ = Memory(max_rows_ * bytes, "the scales of rows as codes");
  }
  if (const std::size_t bytes = ordered_bytes_of(w); bytes > ordered_bytes_) {
    ordered_bytes_ = bytes;
    ordered_ = Memory(max_rows_ * bytes, "rows in the order of columns");
  }
}

void RowCoder::reserve_rows(std::uint32_t max_rows) {
  if (max_rows <= max_rows_) return;
  max_rows_ = max_rows;
  if (code_stride_ != 0) codes_ = Memory(max_rows_ * code_stride_, "rows as codes");
  if (scale_bytes_ != 0) scales_ = Memory(max_rows_ * scale_bytes_, "the scales of rows as codes");
  if (ordered_bytes_ != 0) ordered_ = Memory(max_rows_ * ordered_bytes_, "rows in the order of columns");
}

void RowCoder::code_row(const Kernels& kernels, const PackedWeight& w, const HostBuffer& x, std::uint32_t row) {
  CHECK_LT(row, max_rows_);
  CHECK_EQ(x.width(), w.k());
  CHECK_LE(scale_bytes_of(w), scale_bytes_);
  CHECK_LE(code_stride_of(w), code_stride_);
  auto* codes = reinterpret_cast<std::int8_t*>(codes_.data()) + row * code_stride_of(w);
  const float* inputs = x.row(row);
  if (const std::uint32_t* columns = w.columns(); columns != nullptr) {
    CHECK_LE(ordered_bytes_of(w), ordered_bytes_);
    std::byte* to = are_floats(w) ? reinterpret_cast<std::byte*>(codes) : ordered_.data() + row * ordered_bytes_of(w);
    auto* ordered = reinterpret_cast<float*>(to);
    for (std::uint32_t i = 0; i < w.k(); ++i) ordered[i] = inputs[columns[i]];
    if (are_floats(w)) return;
    inputs = ordered;
  }
  if (is_rounded(w)) return kernels.round_row(inputs, w.k(), codes);
  std::byte* scales = scales_.data() + row * scale_bytes_of(w);
  if (has_runs(w))
    return kernels.quantize_runs(inputs, w.k(), *w.kernels().blocks, codes, reinterpret_cast<CodedRun*>(scales));
  const bool has_one_scale = w.format().activation == backend::Format::Activation::kInt8PerRow;
  kernels.quantize_row(inputs, w.k(), has_one_scale, codes, reinterpret_cast<CodedGroup*>(scales));
}

CodedRows RowCoder::rows(const PackedWeight& w, std::uint32_t first) const {
  CodedRows rows;
  rows.code_stride = code_stride_of(w);
  rows.codes = reinterpret_cast<const std::int8_t*>(codes_.data()) + first * rows.code_stride;
  if (num_scales_of(w) == 0) return rows;
  const std::byte* scales = scales_.data() + first * scale_bytes_of(w);
  if (has_runs(w)) {
    rows.runs = reinterpret_cast<const CodedRun*>(scales);
    rows.run_stride = num_scales_of(w);
  } else {
    rows.groups = reinterpret_cast<const CodedGroup*>(scales);
    rows.group_stride = num_scales_of(w);
  }
  return rows;
}

}  // namespace quire::cpu
