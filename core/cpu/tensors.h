// What the CPU backend holds: packed weights, row buffers, rope tables, the paged cache. Panels: isa/kernels.h.
// Owner   whoever asked Ops to make them.
// Thread  made while starting; then the engine thread and its team.
// Fails   StartError: out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/cpu/memory.h"

namespace quire::cpu {

// Panels of 16 outputs (isa/kernels.h). Outputs beyond n, and the odd k of bf16, are zero.
class PackedWeight final : public backend::Weight {
 public:
  PackedWeight(std::uint32_t n, std::uint32_t k, backend::DType dtype, bool has_bias);

  std::uint32_t n() const override { return n_; }
  std::uint32_t k() const override { return k_; }
  backend::DType dtype() const override { return dtype_; }
  std::size_t bytes() const override { return panels_.bytes() + bias_.bytes(); }

  std::uint32_t num_panels() const { return (n_ + 15) / 16; }
  std::size_t panel_bytes() const { return panel_bytes_; }
  std::byte* panel(std::uint32_t i) { return panels_.data() + i * panel_bytes_; }
  const std::byte* panel(std::uint32_t i) const { return panels_.data() + i * panel_bytes_; }
  // [num_panels * 16]; null: no bias. Outputs without one hold -0, the only value whose addition changes nothing.
  float* bias() { return bias_.floats(); }
  const float* bias() const { return bias_.floats(); }

 private:
  std::uint32_t n_;
  std::uint32_t k_;
  backend::DType dtype_;
  std::size_t panel_bytes_;
  Memory panels_;
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

// [layer][block][kv head]: K as P/16 panels of 16 tokens (a weight's panel with tokens as outputs and D as k), then V
// as [P][D padded to 16], its padding zero where a row was stored.
class PagedCache final : public backend::KvCache {
 public:
  explicit PagedCache(const backend::KvShape& shape);

  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return memory_.bytes(); }

  std::uint32_t padded_head() const { return (shape_.head_dim + 15) / 16 * 16; }
  std::size_t v_row_bytes() const { return padded_head() * backend::bytes_of(shape_.dtype); }
  // The 16 tokens that hold `offset` of a block: K's panel, V's first row.
  const std::byte* k_group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return head_start(layer, block, head) + offset / 16 * group_bytes_;
  }
  const std::byte* v_group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return head_start(layer, block, head) + k_bytes_ + offset / 16 * 16 * v_row_bytes();
  }

  // One token's key and value, in the cache's type (bf16: round to nearest even).
  void store(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset, const float* k,
             const float* v);
  void copy(BlockId from, BlockId to);

 private:
  const std::byte* head_start(std::uint32_t layer, BlockId block, std::uint32_t head) const {
    const std::size_t index = (std::size_t{layer} * shape_.num_blocks + block.value) * shape_.num_kv_heads + head;
    return memory_.data() + index * head_bytes_;
  }

  backend::KvShape shape_;
  std::size_t group_bytes_;  // K of 16 tokens
  std::size_t k_bytes_;      // K of a block and head
  std::size_t head_bytes_;   // K and V of a block and head
  Memory memory_;
};

}  // namespace quire::cpu
