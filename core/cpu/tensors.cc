#include "core/cpu/tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "core/base/check.h"
#include "core/base/float_bits.h"

namespace quire::cpu {
namespace {

using backend::DType;

constexpr std::uint32_t kGroup = 16;

// f32 and f16: [k][16]; bf16: pairs of k in 32-bit words.
std::size_t panel_bytes_of(std::uint32_t k, DType dtype) {
  const std::size_t padded = dtype == DType::kBF16 ? (std::size_t{k} + 1) / 2 * 2 : k;
  return padded * kGroup * backend::bytes_of(dtype);
}

// SIZE_MAX where the product is larger than that, which Memory then refuses.
std::size_t bytes_of_all(std::initializer_list<std::size_t> factors) {
  std::size_t bytes = 1;
  for (const std::size_t factor : factors) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return SIZE_MAX;
  }
  return bytes;
}

}  // namespace

PackedWeight::PackedWeight(std::uint32_t n, std::uint32_t k, DType dtype, bool has_bias)
    : n_(n),
      k_(k),
      dtype_(dtype),
      panel_bytes_(panel_bytes_of(k, dtype)),
      panels_(num_panels() * panel_bytes_, "a weight") {
  if (!has_bias) return;
  bias_ = Memory(std::size_t{num_panels()} * kGroup * sizeof(float), "a bias");
  std::fill_n(bias_.floats(), std::size_t{num_panels()} * kGroup, -0.0f);
}

HostVector::HostVector(std::span<const float> values)
    : size_(static_cast<std::uint32_t>(values.size())), memory_(values.size_bytes(), "a vector") {
  std::copy(values.begin(), values.end(), memory_.floats());
}

HostRope::HostRope(std::span<const float> cosines, std::span<const float> sines, std::uint32_t half)
    : positions_(0), half_(half), memory_(cosines.size_bytes() + sines.size_bytes(), "a rope table") {
  CHECK_GT(half, 0u);
  CHECK_EQ(cosines.size(), sines.size());
  CHECK_EQ(cosines.size() % half, 0u);
  positions_ = static_cast<std::uint32_t>(cosines.size() / half);
  float* out = memory_.floats();
  for (std::size_t p = 0; p < positions_; ++p, out += 2 * half) {
    std::copy_n(cosines.data() + p * half, half, out);
    std::copy_n(sines.data() + p * half, half, out + half);
  }
}

HostBuffer::HostBuffer(std::uint32_t max_rows, std::uint32_t width)
    : max_rows_(max_rows),
      width_(width),
      stride_(row_stride(width)),
      memory_(max_rows * stride_ * sizeof(float), "a row buffer") {}

PagedCache::PagedCache(const backend::KvShape& shape)
    : shape_(shape),
      group_bytes_(kGroup * shape.head_dim * backend::bytes_of(shape.dtype)),
      k_bytes_(shape.block_tokens / kGroup * group_bytes_),
      head_bytes_(k_bytes_ + shape.block_tokens * v_row_bytes()) {
  CHECK_GT(shape.block_tokens, 0u);
  CHECK_EQ(shape.block_tokens % kGroup, 0u);
  CHECK_GT(shape.head_dim, 0u);
  CHECK_EQ(shape.head_dim % 2, 0u);
  CHECK(shape.dtype == DType::kF32 || shape.dtype == DType::kBF16);
  memory_ = Memory(bytes_of_all({head_bytes_, shape.num_kv_heads, shape.num_blocks, shape.num_layers}), "the KV cache");
#ifndef NDEBUG
  // NaN in f32 and in bf16: whatever reads a slot that no row has stored is seen.
  std::fill_n(reinterpret_cast<std::uint16_t*>(memory_.data()), memory_.bytes() / 2, std::uint16_t{0x7fc0});
#endif
}

void PagedCache::store(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset, const float* k,
                       const float* v) {
  const std::uint32_t size = shape_.head_dim;
  const std::uint32_t lane = offset % kGroup;
  auto* k_out = const_cast<std::byte*>(k_group(layer, block, head, offset));
  auto* v_out = const_cast<std::byte*>(v_group(layer, block, head, offset)) + lane * v_row_bytes();
  if (shape_.dtype == DType::kF32) {
    auto* keys = reinterpret_cast<float*>(k_out) + lane;
    for (std::uint32_t d = 0; d < size; ++d) keys[d * kGroup] = k[d];
    auto* values = reinterpret_cast<float*>(v_out);
    std::copy_n(v, size, values);
    std::fill(values + size, values + padded_head(), 0.0f);
    return;
  }
  auto* keys = reinterpret_cast<std::uint32_t*>(k_out) + lane;  // words of (d, d + 1)
  for (std::uint32_t d = 0; d < size; d += 2) {
    keys[d / 2 * kGroup] = bf16_of_f32(k[d]) | std::uint32_t{bf16_of_f32(k[d + 1])} << 16;
  }
  auto* values = reinterpret_cast<std::uint16_t*>(v_out);
  for (std::uint32_t d = 0; d < size; ++d) values[d] = bf16_of_f32(v[d]);
  std::fill(values + size, values + padded_head(), std::uint16_t{0});
}

void PagedCache::copy(BlockId from, BlockId to) {
  CHECK_LT(from.value, shape_.num_blocks);
  CHECK_LT(to.value, shape_.num_blocks);
  const std::size_t block_bytes = head_bytes_ * shape_.num_kv_heads;
  for (std::size_t layer = 0; layer < shape_.num_layers; ++layer) {
    std::byte* start = memory_.data() + layer * shape_.num_blocks * block_bytes;
    std::memmove(start + to.value * block_bytes, start + from.value * block_bytes, block_bytes);
  }
}

}  // namespace quire::cpu
