// Whole blocks: what copying, poisoning, reading and writing move, and what a block takes.
#include "core/cpu/paged_cache.h"

#include <algorithm>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::paged_cache_test {
namespace {

using backend::KvShape;

constexpr std::uint32_t kLayers = 3;
constexpr std::uint32_t kHead = 18;  // padded to 32
constexpr std::uint32_t kHeads = 2;
constexpr std::uint32_t kBlock = 32;
constexpr std::uint32_t kBlocks = 5;

class PagedCacheTest : public ::testing::TestWithParam<KvType> {
 protected:
  PagedCacheTest() {
    backend::KvShape shape{backend::kv_layers(kLayers, kHeads, kHead), kBlock, kBlocks, GetParam(), 1};
    cache_ = ops_->make_kv(shape);
    rope_ = ops_->upload_rope(std::vector<float>(kBlock * kHead / 2, 1.0f),
                              std::vector<float>(kBlock * kHead / 2, 0.0f), kHead / 2);
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
        for (const std::uint32_t offset : {0u, kBlock - 1})
          store(layer, BlockId(block), offset, value_of(layer, block));
      }
    }
  }

  // Exact in every type, but for the last bits of int8's scale.
  static float value_of(std::uint32_t layer, std::uint32_t block) {
    return std::ldexp(1.0f, static_cast<int>(kBlocks * layer + block) - 6);
  }

  // K and V of one token := value; with int4, which stores nothing less, of its whole group.
  void store(std::uint32_t layer, BlockId block, std::uint32_t offset, float value) {
    const std::uint32_t rows = GetParam() == KvType::kInt4 ? 16 : 1;
    const auto qkv = ops_->make_buffer(rows, 3 * kHeads * kHead);
    const std::vector<float> values(std::size_t{rows} * 3 * kHeads * kHead, value);
    OwnedBatch batch;
    batch.add(offset / rows * rows, rows, {&block, 1}, kBlock);
    ops_->begin(batch.view());
    fill(*ops_, *qkv, values);
    ops_->rope_store(spec(layer), *qkv, *cache_);
  }

  // V of one token, as a row that sees nothing else finds it. With int4 no row reads what is stored of its own group:
  // there the next group's first row does, and sees itself besides, a zero.
  float stored(std::uint32_t layer, BlockId block, std::uint32_t offset) {
    const bool from_next = GetParam() == KvType::kInt4;
    const auto qkv = ops_->make_buffer(1, 3 * kHeads * kHead);
    const auto out = ops_->make_buffer(1, kHeads * kHead);
    OwnedBatch batch;
    const BlockId table[] = {block, block};
    batch.add(from_next ? offset / 16 * 16 + 16 : offset, 1, table, kBlock);
    ops_->begin(batch.view());
    ops_->attend(spec(layer, from_next ? 2 : 1), *qkv, *cache_, *out);
    const std::vector<float> values = read(*ops_, *out, 1);
    for (const float value : values) EXPECT_TRUE(same_bits({&value, 1}, {values.data(), 1}) || std::isnan(value));
    return from_next ? 2 * values[0] : values[0];
  }

  void expect_holds(BlockId block, std::uint32_t content) {
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      for (const std::uint32_t offset : {0u, kBlock - 1}) {
        EXPECT_FLOAT_EQ(stored(layer, block, offset), value_of(layer, content))
            << "layer " << layer << " block " << block;
      }
    }
  }

  std::unique_ptr<backend::Ops> ops_ = make_ops("auto", 1);
  std::unique_ptr<backend::KvCache> cache_;
  std::unique_ptr<backend::RopeTable> rope_;

 private:
  backend::AttentionSpec spec(std::uint32_t layer, std::uint32_t window = 1) {
    backend::AttentionSpec spec;
    spec.layer = layer;
    spec.num_heads = spec.num_kv_heads = kHeads;
    spec.head_dim = kHead;
    spec.window = window;
    spec.rope = rope_.get();
    return spec;
  }
};

TEST_P(PagedCacheTest, ACopyTakesAllLayersAndLeavesTheOtherBlocksAlone) {
  const backend::BlockCopy copies[] = {{BlockId(1), BlockId(3)}, {BlockId(3), BlockId(4)}};  // in order
  ops_->copy_blocks(*cache_, copies);
  expect_holds(BlockId(0), 0);
  expect_holds(BlockId(1), 1);
  expect_holds(BlockId(2), 2);
  expect_holds(BlockId(3), 1);
  expect_holds(BlockId(4), 1);
}

TEST_P(PagedCacheTest, WhatIsReadFromOneBlockCanBeWrittenToAnotherOfAnotherCache) {
  std::vector<std::byte> bytes(cache_->block_bytes());
  ops_->read_block(*cache_, BlockId(2), bytes);
  ops_->poison_block(*cache_, BlockId(2));
  ops_->write_block(*cache_, BlockId(2), bytes);
  expect_holds(BlockId(2), 2);
  backend::KvShape smaller = cache_->shape();
  smaller.num_blocks = 1;
  cache_ = ops_->make_kv(smaller);
  ops_->write_block(*cache_, BlockId(0), bytes);
  expect_holds(BlockId(0), 2);
}

TEST_P(PagedCacheTest, APoisonedBlockIsNanInEveryLayerAndOthersAreNot) {
  ops_->poison_block(*cache_, BlockId(1));
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    for (std::uint32_t offset = 0; offset < kBlock; ++offset) {
      EXPECT_TRUE(std::isnan(stored(layer, BlockId(1), offset))) << "layer " << layer << " offset " << offset;
    }
  }
  expect_holds(BlockId(0), 0);
  expect_holds(BlockId(2), 2);
  store(0, BlockId(1), 5, 3.0f);
  EXPECT_FLOAT_EQ(stored(0, BlockId(1), 5), 3.0f);
}

TEST_P(PagedCacheTest, TakesTheBytesThatTheBackendForetold) {
  EXPECT_EQ(cache_->block_bytes(), kv_block_bytes(cache_->shape()));
  EXPECT_EQ(cache_->bytes(), kBlocks * cache_->block_bytes() + kv_residual_group_bytes(cache_->shape()));
}

using PagedCacheDeathTest = PagedCacheTest;

TEST_P(PagedCacheDeathTest, BlocksBytesAndLayersThatAreNotThereAreOurBug) {
  std::vector<std::byte> bytes(cache_->block_bytes());
  std::vector<std::byte> fewer(cache_->block_bytes() - 1);
  EXPECT_DEATH(ops_->read_block(*cache_, BlockId(kBlocks), bytes), "CHECK failed");
  EXPECT_DEATH(ops_->write_block(*cache_, BlockId(kBlocks), bytes), "CHECK failed");
  EXPECT_DEATH(ops_->poison_block(*cache_, BlockId(kBlocks)), "CHECK failed");
  EXPECT_DEATH(ops_->read_block(*cache_, BlockId(0), fewer), "CHECK failed");
  EXPECT_DEATH(ops_->write_block(*cache_, BlockId(0), fewer), "CHECK failed");
  EXPECT_DEATH(store(kLayers, BlockId(0), 0, 1.0f), "CHECK failed");
}

INSTANTIATE_TEST_SUITE_P(Kv, PagedCacheTest, ::testing::ValuesIn(backend::kAllKvTypes),
                         [](const auto& kv) { return std::string(backend::name_of(kv.param)); });
INSTANTIATE_TEST_SUITE_P(Kv, PagedCacheDeathTest, ::testing::Values(KvType::kBF16),
                         [](const auto& kv) { return std::string(backend::name_of(kv.param)); });

TEST(KvBlockBytes, CountTheHeadAsItIsPadded) {
  // K as it is, V padded to 16.
  EXPECT_EQ(kv_block_bytes({backend::kv_layers(3, 2, 64), 16, 1, KvType::kF32}), 3u * 2 * 16 * (64 + 64) * 4);
  EXPECT_EQ(kv_block_bytes({backend::kv_layers(3, 2, 18), 16, 1, KvType::kBF16}), 3u * 2 * 16 * (18 + 32) * 2);
  EXPECT_EQ(kv_block_bytes({backend::kv_layers(3, 2, 18), 16, 1, KvType::kFp8}), 3u * 2 * 16 * (18 + 32));
  // int8 has two f32 a token.
  EXPECT_EQ(kv_block_bytes({backend::kv_layers(3, 2, 18), 16, 1, KvType::kInt8}), 3u * 2 * 16 * (18 + 32 + 8));
  // int4: half a byte, V padded to 32, and two bf16 for each of K's channels and V's tokens.
  EXPECT_EQ(kv_block_bytes({backend::kv_layers(3, 2, 34), 16, 1, KvType::kInt4}),
            3u * 2 * (8 * (34 + 64) + 4 * 34 + 4 * 16));
  EXPECT_EQ(kv_residual_group_bytes({backend::kv_layers(3, 2, 18), 16, 1, KvType::kInt4}), 4u * 2 * 16 * 2 * 18 * 4);
  EXPECT_EQ(kv_residual_group_bytes({backend::kv_layers(3, 2, 18), 16, 1, KvType::kInt8}), 0u);
  EXPECT_EQ(kv_block_bytes({backend::kv_layers(4, 2, 64), 32, 9, KvType::kF32}), 4u * 2 * 32 * (64 + 64) * 4);
}

// Two groups, of 3 and of 5 heads.
KvShape uneven() {
  return {{{.num_kv_heads = 1, .head_dim = 64, .group = 0, .place = 1},
           {.num_kv_heads = 2, .head_dim = 64, .group = 0, .place = 0},
           {.num_kv_heads = 4, .head_dim = 64, .group = 1, .place = 0},
           {.num_kv_heads = 1, .head_dim = 64, .group = 1, .place = 1}},
          16,
          3,
          KvType::kBF16};
}

TEST(KvBlockLayout, PutsEachLayerBehindThoseOfItsGroup) {
  constexpr std::size_t kOfHead = 16 * (64 + 64) * 2;
  const backend::KvBlockLayout layout =
      backend::block_layout(uneven(), [](const auto& layer) { return layer.num_kv_heads * kOfHead; });
  EXPECT_EQ(layout.offsets, (std::vector<std::size_t>{2 * kOfHead, 0, 0, 4 * kOfHead}));
  EXPECT_EQ(layout.bytes, 5 * kOfHead) << "of the largest group";
  EXPECT_EQ(kv_block_bytes(uneven()), layout.bytes);
  EXPECT_FALSE(uneven().groups_are_alike());
}

TEST(KvBlockLayout, IsOfNoLayersEmptyAndOfTooManyBytesBeyondAnyMemory) {
  EXPECT_EQ(backend::block_layout({}, [](const auto&) { return 1; }).bytes, 0u);
  const KvShape shape{.layers = backend::kv_layers(3, 1, 2)};
  const auto half = [](const auto&) { return SIZE_MAX / 2 + 1; };
  EXPECT_EQ(backend::block_layout(shape, half).bytes, SIZE_MAX);
  EXPECT_TRUE(shape.groups_are_alike());
}

// Blocks of the small group are written behind its layers, too: whole blocks are one piece.
TEST(PagedCache, CopiesAndKeepsWholeBlocksOfGroupsOfOtherSizes) {
  PagedCache cache(uneven());
  std::vector<std::byte> bytes(cache.block_bytes());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  cache.write(BlockId(0), bytes);
  cache.copy(BlockId(0), BlockId(2));
  cache.poison(BlockId(1));
  std::vector<std::byte> out(bytes.size());
  for (const std::uint32_t block : {0u, 2u}) {
    cache.read(BlockId(block), out);
    EXPECT_EQ(out, bytes);
  }
  EXPECT_EQ(cache.group(1, BlockId(2), 0, 0), cache.group(2, BlockId(2), 0, 0));
  EXPECT_EQ(cache.group(3, BlockId(2), 0, 0) - cache.group(2, BlockId(0), 0, 0), 2 * 5 * 4096 + 4 * 4096);
}

TEST(PagedCache, CopiesARowInTheLayersOfItsGroupAlone) {
  PagedCache cache(uneven());
  std::vector<std::byte> bytes(cache.block_bytes());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i / 4096 + 1);
  cache.write(BlockId(0), bytes);
  std::ranges::fill(bytes, std::byte{0});
  cache.write(BlockId(1), bytes);
  cache.copy_row({.from = 3, .to = 16 + 5, .group = 0});
  std::vector<std::byte> out(bytes.size());
  cache.read(BlockId(1), out);
  constexpr std::ptrdiff_t kRow = 2 * 64 * 2;  // K and V of a head
  for (std::size_t head = 0; head < 5; ++head) {
    const auto copied = std::ranges::count(std::span(out).subspan(head * 4096, 4096), static_cast<std::byte>(head + 1));
    EXPECT_EQ(copied, head < 3 ? kRow : 0) << "head " << head;
  }
}

}  // namespace
}  // namespace quire::cpu::test::paged_cache_test
