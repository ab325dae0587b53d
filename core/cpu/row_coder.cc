#include "core/cpu/row_coder.h"

#include "core/base/check.h"

namespace quire::cpu {
namespace {

bool is_rounded(const PackedWeight& w) { return w.format().activation == backend::Format::Activation::kBF16; }

// Number of groups of int8 codes.
std::uint32_t num_groups_of(const PackedWeight& w) {
  return is_rounded(w) ? 0 : (w.k() + kCodedGroup - 1) / kCodedGroup;
}

// One cache line more than needed, because rows whose length is a power of two would share a few sets of L1.
std::size_t code_stride_of(const PackedWeight& w) {
  const std::size_t rounded = (std::size_t{w.k()} * sizeof(float) + 63) / 64 * 64;
  return (is_rounded(w) ? rounded : std::size_t{num_groups_of(w)} * kCodedGroup) + 64;
}

}  // namespace

void RowCoder::reserve(const PackedWeight& w) {
  if (const std::size_t stride = code_stride_of(w); stride > code_stride_) {
    code_stride_ = stride;
    codes_ = Memory(max_rows_ * stride, "rows as codes");
  }
  if (const std::uint32_t num_groups = num_groups_of(w); num_groups > num_groups_) {
    num_groups_ = num_groups;
    groups_ = Memory(std::size_t{max_rows_} * num_groups * sizeof(CodedGroup), "the scales of rows as codes");
  }
}

void RowCoder::code_row(const Kernels& kernels, const PackedWeight& w, const HostBuffer& x, std::uint32_t row) {
  CHECK_LT(row, max_rows_);
  CHECK_EQ(x.width(), w.k());
  const std::uint32_t num_groups = num_groups_of(w);
  CHECK_LE(num_groups, num_groups_);
  CHECK_LE(code_stride_of(w), code_stride_);
  auto* codes = reinterpret_cast<std::int8_t*>(codes_.data()) + row * code_stride_of(w);
  if (is_rounded(w)) return kernels.round_row(x.row(row), w.k(), codes);
  auto* groups = reinterpret_cast<CodedGroup*>(groups_.data()) + std::size_t{row} * num_groups;
  kernels.quantize_row(x.row(row), w.k(), codes, groups);
}

CodedRows RowCoder::rows(const PackedWeight& w, std::uint32_t first) const {
  const std::uint32_t num_groups = num_groups_of(w);
  const std::size_t code_stride = code_stride_of(w);
  const auto* codes = reinterpret_cast<const std::int8_t*>(codes_.data());
  const auto* groups = reinterpret_cast<const CodedGroup*>(groups_.data());
  return {codes + first * code_stride, code_stride, groups + std::size_t{first} * num_groups, num_groups};
}

}  // namespace quire::cpu
