#include "core/cpu/row_coder.h"

#include "core/base/check.h"

namespace quire::cpu {
namespace {

constexpr std::uint32_t kRunInputs = 32;

bool is_rounded(const PackedWeight& w) { return w.format().activation == backend::Format::Activation::kBF16; }
bool has_runs(const PackedWeight& w) { return w.format().is_blocks(); }

// Groups or runs of a row.
std::uint32_t num_scales_of(const PackedWeight& w) {
  if (is_rounded(w)) return 0;
  const std::uint32_t inputs = has_runs(w) ? kRunInputs : kCodedGroup;
  return (w.k() + inputs - 1) / inputs;
}
std::size_t scale_bytes_of(const PackedWeight& w) {
  return num_scales_of(w) * (has_runs(w) ? sizeof(CodedRun) : sizeof(CodedGroup));
}

// One cache line more than needed, because rows whose length is a power of two would share a few sets of L1.
std::size_t code_stride_of(const PackedWeight& w) {
  const std::size_t rounded = (std::size_t{w.k()} * sizeof(float) + 63) / 64 * 64;
  const std::size_t coded = (std::size_t{w.k()} + kCodedGroup - 1) / kCodedGroup * kCodedGroup;
  return (is_rounded(w) ? rounded : coded) + 64;
}

}  // namespace

void RowCoder::reserve(const PackedWeight& w) {
  if (const std::size_t stride = code_stride_of(w); stride > code_stride_) {
    code_stride_ = stride;
    codes_ = Memory(max_rows_ * stride, "rows as codes");
  }
  if (const std::size_t bytes = scale_bytes_of(w); bytes > scale_bytes_) {
    scale_bytes_ = bytes;
    scales_ = Memory(max_rows_ * bytes, "the scales of rows as codes");
  }
}

void RowCoder::reserve_rows(std::uint32_t max_rows) {
  if (max_rows <= max_rows_) return;
  max_rows_ = max_rows;
  if (code_stride_ != 0) codes_ = Memory(max_rows_ * code_stride_, "rows as codes");
  if (scale_bytes_ != 0) scales_ = Memory(max_rows_ * scale_bytes_, "the scales of rows as codes");
}

void RowCoder::code_row(const Kernels& kernels, const PackedWeight& w, const HostBuffer& x, std::uint32_t row) {
  CHECK_LT(row, max_rows_);
  CHECK_EQ(x.width(), w.k());
  CHECK_LE(scale_bytes_of(w), scale_bytes_);
  CHECK_LE(code_stride_of(w), code_stride_);
  auto* codes = reinterpret_cast<std::int8_t*>(codes_.data()) + row * code_stride_of(w);
  if (is_rounded(w)) return kernels.round_row(x.row(row), w.k(), codes);
  std::byte* scales = scales_.data() + row * scale_bytes_of(w);
  if (has_runs(w))
    return kernels.quantize_runs(x.row(row), w.k(), *w.kernels().blocks, codes, reinterpret_cast<CodedRun*>(scales));
  kernels.quantize_row(x.row(row), w.k(), codes, reinterpret_cast<CodedGroup*>(scales));
}

CodedRows RowCoder::rows(const PackedWeight& w, std::uint32_t first) const {
  CodedRows rows;
  rows.code_stride = code_stride_of(w);
  rows.codes = reinterpret_cast<const std::int8_t*>(codes_.data()) + first * rows.code_stride;
  const std::byte* scales = scales_.data() + first * scale_bytes_of(w);
  if (has_runs(w)) {
    rows.runs = reinterpret_cast<const CodedRun*>(scales);
    rows.run_stride = num_scales_of(w);
  } else if (!is_rounded(w)) {
    rows.groups = reinterpret_cast<const CodedGroup*>(scales);
    rows.group_stride = num_scales_of(w);
  }
  return rows;
}

}  // namespace quire::cpu
