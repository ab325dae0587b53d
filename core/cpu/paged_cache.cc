#include "core/cpu/paged_cache.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu {
namespace {

using backend::DType;
using backend::KvShape;

constexpr std::uint32_t kGroup = 16;
constexpr std::uint16_t kNanPattern = 0x7fc0;  // NaN in bf16, and twice in a row in f32

// SIZE_MAX where the product is larger than that, which Memory then refuses.
std::size_t bytes_of_all(std::initializer_list<std::size_t> factors) {
  std::size_t bytes = 1;
  for (const std::size_t factor : factors) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return SIZE_MAX;
  }
  return bytes;
}

std::size_t k_bytes_of(const KvShape& shape) { return kGroup * shape.head_dim * backend::bytes_of(shape.dtype); }

std::size_t v_bytes_of(const KvShape& shape) {
  return kGroup * ((shape.head_dim + kGroup - 1) / kGroup * kGroup) * backend::bytes_of(shape.dtype);
}

std::size_t layer_bytes_of(const KvShape& shape) {
  return bytes_of_all({k_bytes_of(shape) + v_bytes_of(shape), shape.block_tokens / kGroup, shape.num_kv_heads});
}

void fill_with_nan(std::byte* bytes, std::size_t count) {
  std::fill_n(reinterpret_cast<std::uint16_t*>(bytes), count / sizeof(kNanPattern), kNanPattern);
}

}  // namespace

std::uint64_t kv_block_bytes(const KvShape& shape) {
  return bytes_of_all({layer_bytes_of(shape), shape.all_layers()}) + shape.tail_bytes;
}

PagedCache::PagedCache(const KvShape& shape)
    : shape_(shape),
      k_bytes_(k_bytes_of(shape)),
      group_bytes_(k_bytes_ + v_bytes_of(shape)),
      layer_bytes_(layer_bytes_of(shape)) {
  CHECK_GT(shape.block_tokens, 0u);
  CHECK_EQ(shape.block_tokens % kGroup, 0u);
  CHECK_GT(shape.head_dim, 0u);
  CHECK_EQ(shape.head_dim % 2, 0u);
  CHECK(shape.dtype == DType::kF32 || shape.dtype == DType::kBF16);
  memory_ = Memory(bytes_of_all({layer_bytes_, shape.num_blocks, shape.all_layers()}), "the KV cache");
  if (shape.tail_bytes > 0) tails_ = Memory(bytes_of_all({shape.tail_bytes, shape.num_blocks}), "the KV cache's tails");
#ifndef NDEBUG
  fill_with_nan(memory_.data(), memory_.bytes());  // whatever reads a slot that no row has stored is seen
#endif
}

void PagedCache::store(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset, const float* k,
                       const float* v) {
  const std::uint32_t size = shape_.head_dim;
  const std::uint32_t lane = offset % kGroup;
  auto* k_out = const_cast<std::byte*>(k_group(layer, block, head, offset));
  auto* v_out = k_out + k_bytes_ + lane * v_row_bytes();
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
  for (std::size_t layer = 0; layer < shape_.all_layers(); ++layer) {
    std::memmove(layer_start(layer, to), layer_start(layer, from), layer_bytes_);
  }
  const std::span<const std::byte> bytes = tail(from);
  std::copy(bytes.begin(), bytes.end(), tail(to).begin());
}

void PagedCache::poison(BlockId block) {
  CHECK_LT(block.value, shape_.num_blocks);
  for (std::size_t layer = 0; layer < shape_.all_layers(); ++layer) {
    fill_with_nan(layer_start(layer, block), layer_bytes_);
  }
}

void PagedCache::read(BlockId block, std::span<std::byte> out) const {
  CHECK_LT(block.value, shape_.num_blocks);
  CHECK_EQ(out.size(), block_bytes());
  for (std::size_t layer = 0; layer < shape_.all_layers(); ++layer) {
    std::copy_n(layer_start(layer, block), layer_bytes_, out.data() + layer * layer_bytes_);
  }
  const std::span<const std::byte> bytes = tail(block);
  std::copy(bytes.begin(), bytes.end(), out.end() - shape_.tail_bytes);
}

void PagedCache::write(BlockId block, std::span<const std::byte> bytes) {
  CHECK_LT(block.value, shape_.num_blocks);
  CHECK_EQ(bytes.size(), block_bytes());
  for (std::size_t layer = 0; layer < shape_.all_layers(); ++layer) {
    std::copy_n(bytes.data() + layer * layer_bytes_, layer_bytes_, layer_start(layer, block));
  }
  std::copy(bytes.end() - shape_.tail_bytes, bytes.end(), tail(block).begin());
}

std::span<std::byte> PagedCache::tail(BlockId block) {
  CHECK_LT(block.value, shape_.num_blocks);
  return {tails_.data() + std::size_t{block.value} * shape_.tail_bytes, shape_.tail_bytes};
}

std::span<const std::byte> PagedCache::tail(BlockId block) const {
  CHECK_LT(block.value, shape_.num_blocks);
  return {tails_.data() + std::size_t{block.value} * shape_.tail_bytes, shape_.tail_bytes};
}

}  // namespace quire::cpu
