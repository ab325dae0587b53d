// Every shape check: passes what fits, dies one off. No backend needed: shapes are all it sees.
#include "core/backend/expect.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace quire::backend {
namespace {

struct Rows final : Buffer {
  Rows(std::uint32_t rows, std::uint32_t width) : rows_(rows), width_(width) {}
  std::uint32_t max_rows() const override { return rows_; }
  std::uint32_t width() const override { return width_; }
  std::uint32_t rows_, width_;
};
struct Scale final : Vector {
  explicit Scale(std::uint32_t size) : size_(size) {}
  std::uint32_t size() const override { return size_; }
  std::uint32_t size_;
};
struct Matrix final : Weight {
  Matrix(std::uint32_t n, std::uint32_t k) : n_(n), k_(k) {}
  std::uint32_t n() const override { return n_; }
  std::uint32_t k() const override { return k_; }
  Format format() const override { return Format::kF32; }
  std::span<const std::byte> packed() const override { return {}; }
  std::uint32_t n_, k_;
};
struct Rope final : RopeTable {
  explicit Rope(std::uint32_t positions) : positions_(positions) {}
  std::uint32_t positions() const override { return positions_; }
  std::uint32_t positions_;
};
struct Cache final : KvCache {
  explicit Cache(const KvShape& shape) : shape_(shape) {}
  const KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return 0; }
  std::size_t block_bytes() const override { return 0; }
  KvShape shape_;
};

class ExpectDeathTest : public ::testing::Test {
 protected:
  // Two sequences: three rows at positions 14.., one row at 0. Blocks of 16, two and one in their tables.
  std::vector<TokenId> tokens_ = {1, 2, 3, 4};
  std::vector<std::uint32_t> positions_ = {14, 15, 16, 0};
  std::vector<std::uint32_t> slots_ = {30, 31, 0, 32};
  std::vector<SequenceRows> sequences_ = {{0, 3, 14, 0, 2}, {3, 1, 0, 2, 1}};
  std::vector<BlockId> tables_ = {BlockId{1}, BlockId{0}, BlockId{2}};
  std::vector<LogitsRow> logits_rows_ = {{2, 17, {}}, {3, 1, {}}};
  Rope rope_{17};
  AttentionSpec spec_ = [this] {
    AttentionSpec spec;
    spec.layer = 1;
    spec.num_heads = 4;
    spec.num_kv_heads = 2;
    spec.head_dim = 8;
    spec.rope = &rope_;
    return spec;
  }();
  Cache cache_{{kv_layers(2, 2, 8), 16, 3, KvType::kBF16}};

  Batch batch() const { return {tokens_, positions_, slots_, sequences_, tables_, logits_rows_}; }
};

TEST_F(ExpectDeathTest, Batch) {
  expect_batch(batch(), 4);
  EXPECT_DEATH(expect_batch(batch(), 3), "CHECK failed");
  {
    const auto keep = positions_;
    positions_[2] = 17;
    EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
    positions_.pop_back();
    EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
    positions_ = keep;
  }
  {
    const auto keep = sequences_;
    sequences_[1].first_row = 2;
    EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
    sequences_ = keep;
    sequences_[1].num_table = 2;
    EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
    sequences_ = keep;
    sequences_.pop_back();
    EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
    sequences_ = keep;
  }
  {
    const std::vector<FedRow> fed = {{3, 0}};
    Batch one = batch();
    one.fed = fed;
    EXPECT_DEATH(expect_batch(one, 4), "CHECK failed") << "its token is there";
    tokens_[3] = -1;
    EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed") << "nobody feeds it";
    expect_batch(one, 4);
    expect_embed(one, Matrix(5, 6), Rows(4, 6), ~0u);
    tokens_ = {1, 2, -1, 4};
    EXPECT_DEATH(expect_batch(one, 4), "CHECK failed") << "another one is fed";
    tokens_[2] = 3;
  }
  logits_rows_[1].row = 4;
  EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
  logits_rows_[1].row = 1;
  EXPECT_DEATH(expect_batch(batch(), 4), "CHECK failed");
}

TEST_F(ExpectDeathTest, EmbedNormLinear) {
  expect_embed(batch(), Matrix(5, 6), Rows(4, 6), ~0u);
  EXPECT_DEATH(expect_embed(batch(), Matrix(4, 6), Rows(4, 6), ~0u), "CHECK failed");
  EXPECT_DEATH(expect_embed(batch(), Matrix(5, 6), Rows(3, 6), ~0u), "CHECK failed");
  EXPECT_DEATH(expect_embed(batch(), Matrix(5, 6), Rows(4, 7), ~0u), "CHECK failed");
  expect_embed(batch(), Matrix(4, 6), Rows(4, 6), 4);  // token 4 takes the first row
  EXPECT_DEATH(expect_embed(batch(), Matrix(4, 6), Rows(4, 6), 5), "CHECK failed");
  tokens_[0] = -1;
  EXPECT_DEATH(expect_embed(batch(), Matrix(5, 6), Rows(4, 6), ~0u), "CHECK failed");

  const Scale six(6);
  const Norm norm{&six, 1e-5f};
  expect_norm(Rows(4, 6), norm, 4, Rows(5, 6));
  EXPECT_DEATH(expect_norm(Rows(4, 6), norm, 5, Rows(5, 6)), "CHECK failed");
  EXPECT_DEATH(expect_norm(Rows(4, 5), norm, 4, Rows(5, 6)), "CHECK failed");
  EXPECT_DEATH(expect_norm(Rows(4, 6), norm, 4, Rows(4, 5)), "CHECK failed");
  EXPECT_DEATH(expect_norm(Rows(4, 6), Norm(), 4, Rows(4, 6)), "CHECK failed");

  const Norm biased{&six, 1e-5f, NormKind::kLayer, &six};
  expect_norm(Rows(4, 6), biased, 4, Rows(4, 6));
  EXPECT_DEATH(expect_norm(Rows(4, 6), {&six, 1e-5f, NormKind::kRms, &six}, 4, Rows(4, 6)), "CHECK failed");
  expect_norm_columns(Rows(4, 20), 2, 18, 6, norm, 4);
  EXPECT_DEATH(expect_norm_columns(Rows(4, 20), 3, 18, 6, norm, 4), "CHECK failed");
  EXPECT_DEATH(expect_norm_columns(Rows(4, 20), 2, 17, 6, norm, 4), "CHECK failed");
  EXPECT_DEATH(expect_norm_columns(Rows(4, 20), 2, 18, 9, norm, 4), "CHECK failed");
  EXPECT_DEATH(expect_norm_columns(Rows(4, 20), 2, 18, 6, norm, 5), "CHECK failed");

  expect_multiply(Rows(4, 6), Matrix(9, 6), 4, 0, Rows(4, 9));
  expect_multiply(Rows(4, 6), Matrix(9, 6), 4, 1, Rows(4, 10));
  EXPECT_DEATH(expect_multiply(Rows(4, 6), Matrix(9, 6), 5, 0, Rows(5, 9)), "CHECK failed");
  EXPECT_DEATH(expect_multiply(Rows(4, 6), Matrix(9, 7), 4, 0, Rows(4, 9)), "CHECK failed");
  EXPECT_DEATH(expect_multiply(Rows(4, 6), Matrix(9, 6), 4, 0, Rows(4, 8)), "CHECK failed");
  EXPECT_DEATH(expect_multiply(Rows(4, 6), Matrix(9, 6), 4, 1, Rows(4, 9)), "CHECK failed");
  const Rows same(4, 6);
  EXPECT_DEATH(expect_multiply(same, Matrix(6, 6), 4, 0, same), "CHECK failed");
}

TEST_F(ExpectDeathTest, LinearWithWhatIsBeforeAndAfter) {
  const Scale six(6);
  const Matrix w(8, 6);
  const Matrix v(4, 6);
  const Weight* both[] = {&w, &v};
  const Rows x(4, 6);
  Rows eight(4, 8);
  Rows twelve(4, 12);
  Rows normed(4, 6);
  const Before before{{&six, 1e-5f}, &normed};
  expect_linear(batch(), x, w, 4, eight, {}, {});
  expect_linear(batch(), x, WeightList(both), 4, twelve, before, {});
  EXPECT_DEATH(expect_linear(batch(), x, WeightList(both), 4, eight, {}, {}), "CHECK failed");
  EXPECT_DEATH(expect_linear(batch(), x, w, 4, twelve, {}, {}), "CHECK failed");
  EXPECT_DEATH(expect_linear(batch(), x, w, 4, eight, {before.norm, &eight}, {}), "CHECK failed");

  Rows four(4, 4);
  expect_linear(batch(), x, w, 4, eight, {}, ThenActivate{&four});
  EXPECT_DEATH(expect_linear(batch(), x, WeightList(both), 4, twelve, {}, ThenActivate{&four}), "CHECK failed");
  Rows sum(4, 8);
  expect_linear(batch(), x, w, 4, eight, {}, ThenAdd{&sum});
  EXPECT_DEATH(expect_linear(batch(), x, w, 4, eight, {}, ThenAdd{&four}), "CHECK failed");
  expect_linear(batch(), x, w, 2, eight, {}, ThenChoose{8});  // two logits rows
  EXPECT_DEATH(expect_linear(batch(), x, w, 4, eight, {}, ThenChoose{8}), "CHECK failed");
  EXPECT_DEATH(expect_linear(batch(), x, w, 2, eight, {}, ThenChoose{9}), "CHECK failed");
}

TEST_F(ExpectDeathTest, Attention) {
  expect_rope_store(batch(), spec_, Rows(4, 64), cache_);
  expect_attend(batch(), spec_, Rows(4, 64), cache_, Rows(4, 32));
  EXPECT_DEATH(expect_rope_store(batch(), spec_, Rows(4, 63), cache_), "CHECK failed");
  EXPECT_DEATH(expect_rope_store(batch(), spec_, Rows(3, 64), cache_), "CHECK failed");
  EXPECT_DEATH(expect_attend(batch(), spec_, Rows(4, 64), cache_, Rows(4, 64)), "CHECK failed");

  for (const auto& wrong :
       {KvShape{kv_layers(1, 2, 8), 16, 3, KvType::kF32}, KvShape{kv_layers(2, 1, 8), 16, 3, KvType::kF32},
        KvShape{kv_layers(2, 2, 16), 16, 3, KvType::kF32}, KvShape{kv_layers(2, 2, 8), 16, 2, KvType::kF32}}) {
    EXPECT_DEATH(expect_rope_store(batch(), spec_, Rows(4, 64), Cache(wrong)), "CHECK failed");
  }
  const Scale norm(7);
  AttentionSpec normed = spec_;
  normed.q_norm.norm.scale = &norm;
  EXPECT_DEATH(expect_rope_store(batch(), normed, Rows(4, 64), cache_), "CHECK failed");
  normed.q_norm = {};
  normed.k_norm.norm.scale = &norm;
  EXPECT_DEATH(expect_rope_store(batch(), normed, Rows(4, 64), cache_), "CHECK failed");
  const Scale all_heads(32);
  normed = spec_;
  normed.q_norm.norm.scale = &all_heads;  // a scale for each of four heads
  expect_rope_store(batch(), normed, Rows(4, 64), cache_);
  normed.q_norm.first = 8;
  EXPECT_DEATH(expect_rope_store(batch(), normed, Rows(4, 64), cache_), "CHECK failed");
  normed.q_norm = {};
  normed.k_norm = {{&all_heads, 1e-5f}, true};  // two kv heads are a row of 16
  EXPECT_DEATH(expect_rope_store(batch(), normed, Rows(4, 64), cache_), "CHECK failed");
  AttentionSpec scaled = spec_;
  const Scale sixteen(16);
  scaled.q_scale = &sixteen;  // row 2 is at position 16
  EXPECT_DEATH(expect_rope_store(batch(), scaled, Rows(4, 64), cache_), "CHECK failed");
  AttentionSpec shares = spec_;
  shares.stores = false;
  expect_rope_store(batch(), shares, Rows(4, 32), cache_);
  EXPECT_DEATH(expect_rope_store(batch(), shares, Rows(4, 64), cache_), "CHECK failed");
  const Rope shorter(16);
  AttentionSpec early = spec_;
  early.rope = &shorter;
  EXPECT_DEATH(expect_rope_store(batch(), early, Rows(4, 64), cache_), "CHECK failed");

  AttentionSpec biased = spec_;
  const Scale six(6);
  biased.bias = {&six, 2};
  expect_attend(batch(), biased, Rows(4, 64), cache_, Rows(4, 32));
  biased.bias.first = 3;
  EXPECT_DEATH(expect_attend(batch(), biased, Rows(4, 64), cache_, Rows(4, 32)), "CHECK failed");

  AttentionSpec uneven = spec_;
  uneven.num_heads = 3;
  EXPECT_DEATH(expect_attend(batch(), uneven, Rows(4, 56), cache_, Rows(4, 24)), "CHECK failed");
  // Rows at 300.., with one span before theirs.
  const std::vector<std::uint32_t> positions = {300, 301};
  const std::vector<TokenId> tokens = {1, 2};
  const std::vector<BlockId> table(40, BlockId{0});
  const std::vector<std::uint16_t> kept = {0x8001, 0xffff};
  const std::vector<std::uint32_t> slots = {12, 13};
  SequenceRows holed{0, 2, 300, 0, 40, 0, 1};
  const auto attend = [&](std::span<const std::uint16_t> words) {
    const Batch some{tokens, positions, slots, {&holed, 1}, table, {}, words};
    expect_attend(some, spec_, Rows(2, 64), cache_, Rows(2, 32));
  };
  attend(kept);
  EXPECT_DEATH(attend({}), "CHECK failed");
  const std::vector<std::uint16_t> no_sink = {0xfffe};
  EXPECT_DEATH(attend(no_sink), "CHECK failed");
  holed.num_kept = 2;
  EXPECT_DEATH(attend(kept), "CHECK failed");
  holed.num_kept = 1;
  holed.first_position = 511;  // and 512, in the next span
  EXPECT_DEATH(attend(kept), "CHECK failed");

  sequences_[0].num_table = 1;
  EXPECT_DEATH(expect_attend(batch(), spec_, Rows(4, 64), cache_, Rows(4, 32)), "CHECK failed");
}

TEST_F(ExpectDeathTest, RowOps) {
  expect_activate(Rows(4, 12), Activation::kSilu, true, 4, Rows(4, 6));
  expect_activate(Rows(4, 6), Activation::kSilu, false, 4, Rows(4, 6));
  expect_activate(Rows(4, 6), Activation::kXielu, false, 4, Rows(4, 6));
  EXPECT_DEATH(expect_activate(Rows(4, 12), Activation::kXielu, true, 4, Rows(4, 6)), "CHECK failed");
  EXPECT_DEATH(expect_activate(Rows(4, 12), Activation::kSilu, false, 4, Rows(4, 6)), "CHECK failed");
  EXPECT_DEATH(expect_activate(Rows(4, 11), Activation::kSilu, true, 4, Rows(4, 6)), "CHECK failed");
  EXPECT_DEATH(expect_activate(Rows(3, 12), Activation::kSilu, true, 4, Rows(4, 6)), "CHECK failed");
  expect_multiply_by(Rows(4, 6), Rows(4, 9), 3, 4);
  EXPECT_DEATH(expect_multiply_by(Rows(4, 6), Rows(4, 9), 4, 4), "CHECK failed");
  EXPECT_DEATH(expect_multiply_by(Rows(4, 6), Rows(3, 9), 3, 4), "CHECK failed");
  expect_add(Rows(4, 6), Rows(4, 6), 4);
  EXPECT_DEATH(expect_add(Rows(4, 6), Rows(4, 5), 4), "CHECK failed");
  EXPECT_DEATH(expect_add(Rows(4, 6), Rows(4, 6), 5), "CHECK failed");
  expect_place(Rows(4, 6), 4, 3, Rows(4, 9));
  EXPECT_DEATH(expect_place(Rows(4, 6), 4, 4, Rows(4, 9)), "CHECK failed");
  expect_cut(Rows(4, 9), 4, 3, Rows(4, 6));
  EXPECT_DEATH(expect_cut(Rows(4, 9), 4, 4, Rows(4, 6)), "CHECK failed");
  EXPECT_DEATH(expect_cut(Rows(3, 9), 4, 3, Rows(4, 6)), "CHECK failed");
  EXPECT_DEATH(expect_cut(Rows(4, 9), 4, 3, Rows(3, 6)), "CHECK failed");
  expect_gather(batch(), Rows(4, 6), Rows(2, 6));
  EXPECT_DEATH(expect_gather(batch(), Rows(4, 6), Rows(1, 6)), "CHECK failed");
  EXPECT_DEATH(expect_gather(batch(), Rows(4, 6), Rows(2, 7)), "CHECK failed");
  expect_choose(batch(), Rows(2, 6), 6);
  EXPECT_DEATH(expect_choose(batch(), Rows(2, 6), 7), "CHECK failed");
  EXPECT_DEATH(expect_choose(batch(), Rows(1, 6), 6), "CHECK failed");
  EXPECT_DEATH(expect_choose(batch(), Rows(2, 6), 0), "CHECK failed");
}

}  // namespace
}  // namespace quire::backend
