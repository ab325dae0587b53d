#include "core/cpu/paged_cache.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu {
namespace {

using backend::KvLayer;
using backend::KvShape;
using backend::KvType;

// The product of the factors; SIZE_MAX if it overflows, which Memory then refuses.
std::size_t bytes_of_all(std::initializer_list<std::size_t> factors) {
  std::size_t bytes = 1;
  for (const std::size_t factor : factors) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return SIZE_MAX;
  }
  return bytes;
}

backend::KvBlockLayout layout_of(const KvShape& shape) {
  return backend::block_layout(shape, [&](const KvLayer& layer) {
    return bytes_of_all({GroupCodec(shape.type, layer.head_dim, layer.latent).bytes(),
                         shape.block_tokens / kGroupTokens, layer.num_kv_heads});
  });
}

// Floats of the largest layer's part of a residual group.
std::size_t open_floats_of(const KvShape& shape) {
  return shape.most([](const KvLayer& layer) {
    return bytes_of_all({layer.num_kv_heads, kGroupTokens, 2 * std::size_t{layer.head_dim}});
  });
}

}  // namespace

std::uint64_t kv_residual_group_bytes(const KvShape& shape) {
  if (shape.type != KvType::kInt4) return 0;
  return bytes_of_all({std::size_t{shape.num_layers()} + 1, open_floats_of(shape), sizeof(float)});
}

std::uint64_t kv_block_bytes(const KvShape& shape) { return layout_of(shape).bytes; }

PagedCache::PagedCache(const KvShape& shape)
    : shape_(shape), layout_(layout_of(shape)), open_floats_(open_floats_of(shape)) {
  CHECK_GT(shape.block_tokens, 0u);
  CHECK_EQ(shape.block_tokens % kGroupTokens, 0u);
  for (const KvLayer& layer : shape.layers) {
    CHECK_GT(layer.head_dim, 0u);
    CHECK_EQ(layer.head_dim % 2, 0u);
    codecs_.emplace_back(shape.type, layer.head_dim, layer.latent);
  }
  memory_ = Memory(bytes_of_all({layout_.bytes, shape.num_blocks}), "the KV cache");
  open_ = Memory(bytes_of_all({kv_residual_group_bytes(shape), shape.num_residual_groups}),
                 "the KV cache's residual groups");
#ifndef NDEBUG
  poison(memory_.data(), memory_.bytes());  // shows reads of slots that no row has stored
#endif
}

void PagedCache::copy(BlockId from, BlockId to) {
  CHECK_LT(from.value, shape_.num_blocks);
  CHECK_LT(to.value, shape_.num_blocks);
  std::memmove(start_of(to), start_of(from), block_bytes());
}

void PagedCache::copy_row(const backend::RowCopy& copy) {
  const std::uint32_t block_tokens = shape_.block_tokens;
  const BlockId from{copy.from / block_tokens};
  const BlockId to{copy.to / block_tokens};
  CHECK_LT(from.value, shape_.num_blocks);
  CHECK_LT(to.value, shape_.num_blocks);
  for (std::uint32_t layer = 0; layer < shape_.num_layers(); ++layer) {
    if (shape_.layers[layer].group != copy.group) continue;
    for (std::uint32_t head = 0; head < shape_.layers[layer].num_kv_heads; ++head) {
      codecs_[layer].copy(group(layer, from, head, copy.from % block_tokens), copy.from % kGroupTokens,
                          group(layer, to, head, copy.to % block_tokens), copy.to % kGroupTokens);
    }
  }
}

void PagedCache::poison(BlockId block) {
  CHECK_LT(block.value, shape_.num_blocks);
  poison(start_of(block), block_bytes());
}

// All layers have codes of one type, whose NaN does not depend on the layer.
void PagedCache::poison(std::byte* begin, std::size_t bytes) {
  if (!codecs_.empty()) codecs_.front().poison(begin, bytes);
}

void PagedCache::read(BlockId block, std::span<std::byte> out) const {
  CHECK_LT(block.value, shape_.num_blocks);
  CHECK_EQ(out.size(), block_bytes());
  std::copy_n(start_of(block), out.size(), out.data());
}

void PagedCache::write(BlockId block, std::span<const std::byte> bytes) {
  CHECK_LT(block.value, shape_.num_blocks);
  CHECK_EQ(bytes.size(), block_bytes());
  std::copy_n(bytes.data(), bytes.size(), start_of(block));
}

void PagedCache::copy_residual_group(std::uint32_t from, std::uint32_t to) {
  CHECK_LT(from, shape_.num_residual_groups);
  CHECK_LT(to, shape_.num_residual_groups);
  std::memmove(open_row(to, 0, 0, 0), open_row(from, 0, 0, 0), kv_residual_group_bytes(shape_));
}

}  // namespace quire::cpu
