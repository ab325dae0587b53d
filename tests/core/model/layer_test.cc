// Clips of q, k and v, before and behind norms, on the CPU against the same rows normed and clipped by hand.
#include "core/model/layer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/thread_role.h"
#include "tests/core/cpu/rig.h"

namespace quire::model::layer_test {
namespace {

using cpu::test::fill;
using cpu::test::read;

constexpr std::uint32_t kRows = 3, kHeads = 4, kKvHeads = 2, kHeadDim = 6;
constexpr std::uint32_t kQ = kHeads * kHeadDim, kKv = kKvHeads * kHeadDim, kWidth = kQ + 2 * kKv;
constexpr float kLimit = 0.75f, kEps = 1e-5f;

class QkvClipTest : public ::testing::Test {
 protected:
  QkvClipTest() {
    attention_.num_heads = kHeads;
    attention_.num_kv_heads = kKvHeads;
    attention_.head_dim = kHeadDim;
    layer_.qkv_clip = kLimit;
  }

  void set_norms(bool whole_row) {
    q_scale_ = random_.floats(whole_row ? kQ : kHeadDim, 2.0f);
    k_scale_ = random_.floats(whole_row ? kKv : kHeadDim, 2.0f);
    q_vector_ = ops_->upload(q_scale_);
    k_vector_ = ops_->upload(k_scale_);
    attention_.q_norm = {{q_vector_.get(), kEps}, whole_row};
    attention_.k_norm = {{k_vector_.get(), kEps}, whole_row};
  }

  // The first two rows of `x` behind clip_qkv(), and the third, which it leaves.
  std::vector<float> clipped(const std::vector<float>& x, const QkvClip& clip) {
    const RoleScope engine(engine_role);
    const std::uint32_t width = attention_.qkv_width();
    const auto qkv = ops_->make_buffer(kRows, width);
    const auto batch = cpu::test::plain_rows(kRows);
    ops_->begin(batch.view());
    fill(*ops_, *qkv, x);
    clip_qkv(*ops_, clip, attention_, kRows - 1, *qkv);
    return read(*ops_, *qkv, kRows);
  }

  // RMS norms of groups of columns from `column` on, in f64, of all rows but the last.
  static void norm(std::vector<float>& x, std::uint32_t width, std::uint32_t column, std::uint32_t columns,
                   const std::vector<float>& scale) {
    for (std::uint32_t row = 0; row + 1 < kRows; ++row) {
      for (std::uint32_t first = column; first < column + columns; first += scale.size()) {
        float* group = x.data() + row * width + first;
        double squares = 0;
        for (std::size_t i = 0; i < scale.size(); ++i) squares += double{group[i]} * double{group[i]};
        const double r = 1.0 / std::sqrt(squares / static_cast<double>(scale.size()) + double{kEps});
        for (std::size_t i = 0; i < scale.size(); ++i) group[i] = static_cast<float>(group[i] * r * double{scale[i]});
      }
    }
  }

  static void clip_all(std::vector<float>& x, std::uint32_t width) {
    for (std::size_t i = 0; i < x.size() - width; ++i) x[i] = std::clamp(x[i], -kLimit, kLimit);
  }

  // A norm rounds fewer than 16 times, and no value is above 2 * sqrt(24).
  static void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 16 * 10 * 0x1p-24) << i;
  }

  std::unique_ptr<backend::Ops> ops_ = cpu::test::make_ops(cpu::supported_isas().front(), 1);
  cpu::test::Random random_{7};
  std::vector<float> q_scale_, k_scale_;
  std::unique_ptr<backend::Vector> q_vector_, k_vector_;
  backend::AttentionSpec attention_;
  AttentionLayer layer_;
};

TEST_F(QkvClipTest, OfZeroIsNone) {
  layer_.qkv_clip = 0.0f;
  layer_.clips_normed = true;
  set_norms(/*whole_row=*/true);
  EXPECT_FALSE(take_clip(layer_, attention_));
  EXPECT_TRUE(attention_.q_norm && attention_.k_norm);
}

TEST_F(QkvClipTest, BeforeNormsLeavesThemToRopeStore) {
  set_norms(/*whole_row=*/true);
  const QkvClip clip = take_clip(layer_, attention_);
  EXPECT_TRUE(attention_.q_norm && attention_.k_norm && !clip.q_norm && !clip.k_norm);
  std::vector<float> x = random_.floats(kRows * kWidth, 3.0f);
  const std::vector<float> got = clipped(x, clip);
  clip_all(x, kWidth);
  EXPECT_EQ(got, x);
}

TEST_F(QkvClipTest, BehindNormsTakesThemFromRopeStore) {
  layer_.clips_normed = true;
  for (const bool whole_row : {true, false}) {
    SCOPED_TRACE(whole_row);
    set_norms(whole_row);
    const QkvClip clip = take_clip(layer_, attention_);
    EXPECT_FALSE(attention_.q_norm || attention_.k_norm);
    std::vector<float> x = random_.floats(kRows * kWidth, 3.0f);
    const std::vector<float> got = clipped(x, clip);
    norm(x, kWidth, 0, kQ, q_scale_);
    norm(x, kWidth, kQ, kKv, k_scale_);
    clip_all(x, kWidth);
    expect_near(got, x);
  }
}

TEST_F(QkvClipTest, OfALayerThatHasQAloneNormsNoK) {
  layer_.clips_normed = true;
  attention_.stores = false;
  set_norms(/*whole_row=*/true);
  std::vector<float> x = random_.floats(kRows * kQ, 3.0f);
  const std::vector<float> got = clipped(x, take_clip(layer_, attention_));
  norm(x, kQ, 0, kQ, q_scale_);
  clip_all(x, kQ);
  expect_near(got, x);
}

}  // namespace
}  // namespace quire::model::layer_test
