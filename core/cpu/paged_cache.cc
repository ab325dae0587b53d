#include "core/cpu/paged_cache.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "core/base/check.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu {
namespace {

using backend::KvShape;
using backend::KvType;

using backend::kGroupTokens;

// SIZE_MAX where the product is larger than that, which Memory then refuses.
std::size_t bytes_of_all(std::initializer_list<std::size_t> factors) {
  std::size_t bytes = 1;
  for (const std::size_t factor : factors) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return SIZE_MAX;
  }
  return bytes;
}

std::size_t layer_bytes_of(const KvShape& shape) {
  return bytes_of_all(
      {GroupCodec(shape.type, shape.head_dim).bytes(), shape.block_tokens / kGroupTokens, shape.num_kv_heads});
}

}  // namespace

std::uint64_t kv_open_group_bytes(const KvShape& shape) {
  if (shape.type != KvType::kInt4) return 0;
  const std::size_t layers = std::size_t{shape.all_layers()} + 1;
  return bytes_of_all({layers, shape.num_kv_heads, kGroupTokens, 2 * std::size_t{shape.head_dim}, sizeof(float)});
}

std::uint64_t kv_block_bytes(const KvShape& shape) {
  return bytes_of_all({layer_bytes_of(shape), shape.all_layers()}) + shape.tail_bytes;
}

PagedCache::PagedCache(const KvShape& shape)
    : shape_(shape), codec_(shape.type, shape.head_dim), layer_bytes_(layer_bytes_of(shape)) {
  CHECK_GT(shape.block_tokens, 0u);
  CHECK_EQ(shape.block_tokens % kGroupTokens, 0u);
  CHECK_GT(shape.head_dim, 0u);
  CHECK_EQ(shape.head_dim % 2, 0u);
  memory_ = Memory(bytes_of_all({layer_bytes_, shape.num_blocks, shape.all_layers()}), "the KV cache");
  if (shape.tail_bytes > 0) tails_ = Memory(bytes_of_all({shape.tail_bytes, shape.num_blocks}), "the KV cache's tails");
  open_ = Memory(bytes_of_all({kv_open_group_bytes(shape), shape.num_open_groups}), "the KV cache's open groups");
#ifndef NDEBUG
  codec_.poison(memory_.data(), memory_.bytes());  // whatever reads a slot that no row has stored is seen
#endif
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

void PagedCache::copy_row(std::uint32_t from, std::uint32_t to) {
  const BlockId from_block{from / shape_.block_tokens};
  const BlockId to_block{to / shape_.block_tokens};
  CHECK_LT(from_block.value, shape_.num_blocks);
  CHECK_LT(to_block.value, shape_.num_blocks);
  for (std::uint32_t layer = 0; layer < shape_.all_layers(); ++layer) {
    for (std::uint32_t head = 0; head < shape_.num_kv_heads; ++head) {
      codec_.copy(group(layer, from_block, head, from % shape_.block_tokens), from % kGroupTokens,
                  group(layer, to_block, head, to % shape_.block_tokens), to % kGroupTokens);
    }
  }
}

void PagedCache::poison(BlockId block) {
  CHECK_LT(block.value, shape_.num_blocks);
  for (std::size_t layer = 0; layer < shape_.all_layers(); ++layer) {
    codec_.poison(layer_start(layer, block), layer_bytes_);
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

void PagedCache::copy_open_group(std::uint32_t from, std::uint32_t to) {
  CHECK_LT(from, shape_.num_open_groups);
  CHECK_LT(to, shape_.num_open_groups);
  std::memmove(open_row(to, 0, 0, 0), open_row(from, 0, 0, 0), kv_open_group_bytes(shape_));
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
