// What the CPU backend holds: packed weights, row buffers, rope tables. Panels: isa/kernels.h.
// Owner   whoever asked Ops to make them.
// Thread  made while starting; then the engine thread and its team.
// Fails   StartError: out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/cpu/memory.h"

namespace quire::cpu {

// Panels of 16 outputs (isa/kernels.h). Outputs beyond n, and k's that only fill a panel up, are zero.
class PackedWeight final : public backend::Weight {
 public:
  PackedWeight(std::uint32_t n, std::uint32_t k, backend::WeightType type, bool has_bias);

  std::uint32_t n() const override { return n_; }
  std::uint32_t k() const override { return k_; }
  backend::WeightType type() const override { return type_; }
  std::size_t bytes() const override { return panels_.bytes() + scales_.bytes() + bias_.bytes(); }

  std::uint32_t num_panels() const { return (n_ + 15) / 16; }
  std::size_t panel_bytes() const { return panel_bytes_; }
  std::byte* panel(std::uint32_t i) { return panels_.data() + i * panel_bytes_; }
  const std::byte* panel(std::uint32_t i) const { return panels_.data() + i * panel_bytes_; }
  // int8 [num_panels * 16]; null: any other type.
  float* scales() { return scales_.floats(); }
  const float* scales() const { return scales_.floats(); }
  // [num_panels * 16]; null: no bias. Outputs without one hold -0, the only value whose addition changes nothing.
  float* bias() { return bias_.floats(); }
  const float* bias() const { return bias_.floats(); }

 private:
  std::uint32_t n_;
  std::uint32_t k_;
  backend::WeightType type_;
  std::size_t panel_bytes_;
  Memory panels_;
  Memory scales_;
  Memory bias_;
};

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
