// What the CPU backend holds: packed weights, row buffers, rope tables. Panels: isa/kernels.h.
// Owner   whoever asked Ops to make them.
// Thread  made while starting; then the engine thread and its team.
// Fails   StartError: out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/backend/tensors.h"
#include "core/cpu/memory.h"

namespace quire::cpu {

// In one piece: panels | scales | bias. Panels of 16 outputs (isa/kernels.h); outputs beyond n, and k's that only fill a
// panel up, are zero.
class PackedWeight final : public backend::Weight {
 public:
  // Whatever changes what these bytes mean gives it a new number: files of packed weights outlive the program.
  static constexpr const char* kLayout = "cpu panels/2";

  explicit PackedWeight(const backend::WeightShape& shape);  // zero, in memory of its own
  // Somebody else's bytes, of the shape's packed_bytes(), to be read only.
  PackedWeight(const backend::WeightShape& shape, std::span<const std::byte> packed, std::shared_ptr<const void> owner);

  std::uint32_t n() const override { return shape_.n; }
  std::uint32_t k() const override { return shape_.k; }
  backend::WeightType type() const override { return shape_.type; }
  std::span<const std::byte> packed() const override { return packed_; }

  // Whether its linear's input is quantised or rounded first (RowCoder).
  bool wants_codes() const {
    using enum backend::WeightType;
    return type() == kW8A8 || type() == kW4A8 || type() == kW16A16;
  }

  std::uint32_t num_panels() const { return (shape_.n + 15) / 16; }
  std::size_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(std::uint32_t i) const { return packed_.data() + i * panel_bytes_; }
  // int8, w8a8 and fp8 [num_panels * 16]; null: any other type.
  const float* scales() const { return scales_at_ == bias_at_ ? nullptr : floats_at(scales_at_); }
  // [num_panels * 16]; null: no bias. Outputs without one hold -0, the only value whose addition changes nothing.
  const float* bias() const { return bias_at_ == packed_.size() ? nullptr : floats_at(bias_at_); }

  // Of a weight in memory of its own.
  std::byte* panel(std::uint32_t i) { return memory_.data() + i * panel_bytes_; }
  float* scales() { return const_cast<float*>(std::as_const(*this).scales()); }
  float* bias() { return const_cast<float*>(std::as_const(*this).bias()); }

 private:
  const float* floats_at(std::size_t at) const { return reinterpret_cast<const float*>(packed_.data() + at); }

  backend::WeightShape shape_;
  std::size_t panel_bytes_;
  std::size_t scales_at_;
  std::size_t bias_at_;
  Memory memory_;
  std::shared_ptr<const void> owner_;  // of bytes that are not in memory_
  std::span<const std::byte> packed_;
};

// Of a weight with its scales and bias.
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
