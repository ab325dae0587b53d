#include "core/cpu/row_coder.h"

#include "core/base/check.h"

namespace quire::cpu {
namespace {

std::uint32_t num_groups_of(std::uint32_t k) { return (k + kCodedGroup - 1) / kCodedGroup; }

// A line more than whole groups: rows of a power of two would share a few sets of the first cache.
std::size_t code_stride_of(std::uint32_t num_groups) { return std::size_t{num_groups} * kCodedGroup + 64; }

}  // namespace

void RowCoder::reserve(std::uint32_t k) {
  const std::uint32_t num_groups = num_groups_of(k);
  if (num_groups <= num_groups_) return;
  num_groups_ = num_groups;
  codes_ = Memory(max_rows_ * code_stride_of(num_groups), "rows as codes");
  groups_ = Memory(std::size_t{max_rows_} * num_groups * sizeof(CodedGroup), "the scales of rows as codes");
}

void RowCoder::quantize_row(const Kernels& kernels, const HostBuffer& x, std::uint32_t row) {
  CHECK_LT(row, max_rows_);
  const std::uint32_t num_groups = num_groups_of(x.width());
  CHECK_LE(num_groups, num_groups_);
  auto* codes = reinterpret_cast<std::int8_t*>(codes_.data()) + row * code_stride_of(num_groups);
  auto* groups = reinterpret_cast<CodedGroup*>(groups_.data()) + std::size_t{row} * num_groups;
  kernels.quantize_row(x.row(row), x.width(), codes, groups);
}

CodedRows RowCoder::rows(std::uint32_t first, std::uint32_t k) const {
  const std::uint32_t num_groups = num_groups_of(k);
  const std::size_t code_stride = code_stride_of(num_groups);
  const auto* codes = reinterpret_cast<const std::int8_t*>(codes_.data());
  const auto* groups = reinterpret_cast<const CodedGroup*>(groups_.data());
  return {codes + first * code_stride, code_stride, groups + std::size_t{first} * num_groups, num_groups};
}

}  // namespace quire::cpu
