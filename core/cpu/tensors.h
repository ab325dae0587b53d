// Tensors of the CPU backend: packed weights, vectors, row buffers, rope tables. Panels: isa/kernels.h.
// Owner   the caller of Ops that asked for them.
// Thread  made while starting; then the engine thread and its team.
// Fails   StartError: out of memory; PackedWeight: a format without kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/backend/tensors.h"
#include "core/cpu/memory.h"
#include "core/cpu/pack.h"

namespace quire::cpu {

// A packed weight in one piece: panels | scales | bias | columns. Panels have 16 outputs (isa/kernels.h); outputs
// beyond n, and k's that only pad a panel, are zero.
class PackedWeight final : public backend::Weight {
 public:
  // Every change of what these bytes mean changes the number: files of packed weights outlive the program.
  static constexpr const char* kLayout = "cpu panels/2";

  explicit PackedWeight(const backend::WeightShape& shape);  // zeroed, in its own memory
  // Borrows the bytes, packed_bytes() of the shape, which `owner` keeps alive. Read only.
  PackedWeight(const backend::WeightShape& shape, std::span<const std::byte> packed, std::shared_ptr<const void> owner);

  std::uint32_t n() const override { return shape_.n; }
  std::uint32_t k() const override { return shape_.k; }
  backend::Format format() const override { return shape_.format; }
  bool has_columns() const override { return shape_.has_columns; }
  std::span<const std::byte> packed() const override { return packed_; }

  const FormatKernels& kernels() const { return kernels_; }
  // True if the input of its linear layer is quantised, rounded or put into another order first (RowCoder).
  bool wants_codes() const {
    return shape_.format.activation != backend::Format::Activation::kF32 || shape_.has_columns;
  }

  std::uint32_t num_panels() const { return (shape_.n + 15) / 16; }
  std::size_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(std::uint32_t i) const { return packed_.data() + i * panel_bytes_; }
  // [num_panels * 16]; null: the format has no scales per output.
  const float* scales() const { return scales_at_ == bias_at_ ? nullptr : floats_at(scales_at_); }
  // [num_panels * 16]; null: no bias. Outputs without one hold -0, the only value whose addition changes nothing.
  const float* bias() const { return bias_at_ == columns_at_ ? nullptr : floats_at(bias_at_); }
  // [k] the inputs in the order of the panels; null: that of x.
  const std::uint32_t* columns() const {
    return shape_.has_columns ? reinterpret_cast<const std::uint32_t*>(packed_.data() + columns_at_) : nullptr;
  }

  // For a weight in its own memory only.
  std::byte* panel(std::uint32_t i) { return memory_.data() + i * panel_bytes_; }
  float* scales() { return const_cast<float*>(std::as_const(*this).scales()); }
  float* bias() { return const_cast<float*>(std::as_const(*this).bias()); }
  std::uint32_t* columns() { return const_cast<std::uint32_t*>(std::as_const(*this).columns()); }

 private:
  const float* floats_at(std::size_t at) const { return reinterpret_cast<const float*>(packed_.data() + at); }

  backend::WeightShape shape_;
  const FormatKernels& kernels_;
  std::size_t panel_bytes_;
  std::size_t scales_at_;
  std::size_t bias_at_;
  std::size_t columns_at_;
  Memory memory_;
  std::shared_ptr<const void> owner_;  // keeps bytes that are not in memory_
  std::span<const std::byte> packed_;
};

// Bytes of a packed weight with its scales, bias and columns.
std::size_t packed_bytes(const backend::WeightShape& shape);

class HostVector final : public backend::Vector {
 public:
  explicit HostVector(std::span<const float> values);
  std::uint32_t size() const override { return size_; }
  const float* data() const { return memory_.floats(); }

 private:
  std::uint32_t size_;
  Memory memory_;
};

class HostRope final : public backend::RopeTable {
 public:
  HostRope(std::span<const float> cosines, std::span<const float> sines, std::uint32_t half);
  std::uint32_t positions() const override { return positions_; }
  std::uint32_t half() const { return half_; }
  const float* cosines(std::uint32_t position) const { return row(position); }
  const float* sines(std::uint32_t position) const { return row(position) + half_; }

 private:
  const float* row(std::uint32_t position) const { return memory_.floats() + std::size_t{position} * 2 * half_; }

  std::uint32_t positions_;
  std::uint32_t half_;
  Memory memory_;  // [positions, 2, half]
};

// [max_rows, width] with rows `stride` floats apart (row_stride).
class HostBuffer final : public backend::Buffer {
 public:
  HostBuffer(std::uint32_t max_rows, std::uint32_t width);
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t width() const override { return width_; }
  std::size_t stride() const { return stride_; }
  float* row(std::size_t r) { return memory_.floats() + r * stride_; }
  const float* row(std::size_t r) const { return memory_.floats() + r * stride_; }

 private:
  std::uint32_t max_rows_;
  std::uint32_t width_;
  std::size_t stride_;
  Memory memory_;
};

}  // namespace quire::cpu
