// What storing K and V in fewer bits costs, and what it never hides.
#include "core/cpu/kv_codec.h"

#include <limits>

#include "tests/core/cpu/stored_kv.h"

namespace quire::cpu::test {
namespace {

constexpr std::uint32_t kHead = 18;
constexpr std::uint32_t kPadded = 32;
constexpr std::uint32_t kTokens = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Sixteen tokens through a group: what is read back, [token][D] each.
struct Read {
  std::vector<float> k, v, padding;
};

Read through(KvType type, const std::vector<float>& k, const std::vector<float>& v) {
  const GroupCodec codec(type, kHead);
  std::vector<std::uint64_t> memory(codec.bytes() / 8 + 1);  // aligned
  auto* group = reinterpret_cast<std::byte*>(memory.data());
  codec.poison(group, codec.bytes());
  const float* k_rows[kTokens];
  const float* v_rows[kTokens];
  for (std::uint32_t t = 0; t < kTokens; ++t) {
    k_rows[t] = k.data() + t * kHead;
    v_rows[t] = v.data() + t * kHead;
  }
  codec.store_all(group, k_rows, v_rows);
  std::vector<float> panel(kHead * kTokens);
  std::vector<float> rows(kPadded * kTokens);
  codec.widen(group, panel.data(), rows.data());
  Read read;
  for (std::uint32_t t = 0; t < kTokens; ++t) {
    for (std::uint32_t d = 0; d < kHead; ++d) read.k.push_back(panel[d * kTokens + t]);
    for (std::uint32_t d = 0; d < kHead; ++d) read.v.push_back(rows[t * kPadded + d]);
    for (std::uint32_t d = kHead; d < kPadded; ++d) read.padding.push_back(rows[t * kPadded + d]);
  }
  return read;
}

std::vector<float> token(const std::vector<float>& all, std::uint32_t t) {
  return {all.begin() + t * kHead, all.begin() + (t + 1) * kHead};
}

TEST(KvCodec, GivesBackWhatTheSecondImplementationDoes) {
  Random random(3);
  for (const KvType type : {KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
    for (const float limit : {1e-30f, 1e-3f, 1.0f, 400.0f, 1e4f, 1e30f}) {
      const std::vector<float> k = random.floats(kHead * kTokens, limit);
      const std::vector<float> v = random.floats(kHead * kTokens, limit);
      const Read read = through(type, k, v);
      const std::vector<float> int4_keys = keys_as_int4(k);
      for (std::uint32_t t = 0; t < kTokens; ++t) {
        const auto key = type == KvType::kInt4 ? token(int4_keys, t) : as_stored(type, token(k, t));
        EXPECT_TRUE(same_bits(token(read.k, t), key)) << backend::name_of(type) << limit;
        EXPECT_TRUE(same_bits(token(read.v, t), as_stored(type, token(v, t)))) << backend::name_of(type) << limit;
      }
      for (const float zero : read.padding) EXPECT_EQ(zero, 0.0f);
    }
  }
}

TEST(KvCodec, Int8IsOffByHalfAStepAtMostAndOneTokenDoesNotChangeAnother) {
  Random random(4);
  std::vector<float> k = random.floats(kHead * kTokens, 1.0f);
  std::vector<float> v = random.floats(kHead * kTokens, 1.0f);
  for (std::uint32_t d = 0; d < kHead; ++d) v[3 * kHead + d] *= 1000.0f;
  const Read read = through(KvType::kInt8, k, v);
  for (std::uint32_t t = 0; t < kTokens; ++t) {
    const float largest = t == 3 ? 1000.0f : 1.0f;
    for (std::uint32_t d = 0; d < kHead; ++d) {
      EXPECT_NEAR(read.v[t * kHead + d], v[t * kHead + d], largest / 254 * 1.0001f);
      EXPECT_NEAR(read.k[t * kHead + d], k[t * kHead + d], 1.0001f / 254);
    }
  }
}

TEST(KvCodec, Int4IsOffByHalfAStepAtMostOfItsChannelOrToken) {
  Random random(5);
  std::vector<float> k = random.floats(kHead * kTokens, 1.0f);
  std::vector<float> v = random.floats(kHead * kTokens, 1.0f);
  for (std::uint32_t t = 0; t < kTokens; ++t)
    k[t * kHead + 2] = 50.0f + 3 * k[t * kHead + 2];                      // a channel far off zero
  for (std::uint32_t d = 0; d < kHead; ++d) v[3 * kHead + d] *= 1000.0f;  // a large token
  const Read read = through(KvType::kInt4, k, v);
  for (std::uint32_t t = 0; t < kTokens; ++t) {
    for (std::uint32_t d = 0; d < kHead; ++d) {
      // A step is a fifteenth of the width, plus what rounding to bf16 (2^-8) adds to it and to the lowest.
      const float k_width = d == 2 ? 6.0f + 53.0f / 128 : 2.0f + 1.0f / 128;
      EXPECT_NEAR(read.k[t * kHead + d], k[t * kHead + d], k_width / 30 * 1.01f) << t << " " << d;
      const float v_width = (2.0f + 1.0f / 128) * (t == 3 ? 1000 : 1);
      EXPECT_NEAR(read.v[t * kHead + d], v[t * kHead + d], v_width / 30 * 1.01f) << t << " " << d;
    }
  }
}

TEST(KvCodec, AFaultInInt4SpoilsItsChannelOfKAndItsTokenOfV) {
  for (const float fault : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    std::vector<float> k(kHead * kTokens, 1.0f);
    k[5 * kHead + 7] = fault;
    const Read read = through(KvType::kInt4, k, k);
    for (std::uint32_t i = 0; i < kHead * kTokens; ++i) {
      EXPECT_EQ(std::isnan(read.k[i]), i % kHead == 7) << i;
      EXPECT_EQ(std::isnan(read.v[i]), i / kHead == 5) << i;
    }
  }
}

TEST(KvCodec, ZerosAndNumbersTooSmallForAScaleAreZeros) {
  std::vector<float> tiny(kHead * kTokens, 1e-45f);
  for (const KvType type : {KvType::kFp8, KvType::kInt8}) {
    const Read read = through(type, tiny, std::vector<float>(kHead * kTokens, 0.0f));
    for (const float value : read.k) EXPECT_EQ(value, 0.0f);
    for (const float value : read.v) EXPECT_EQ(value, 0.0f);
  }
}

TEST(KvCodec, AFaultIsNeverRoundedAwayAndStaysWithItsToken) {
  for (const KvType type : {KvType::kFp8, KvType::kInt8}) {
    for (const float fault : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      std::vector<float> k(kHead * kTokens, 1.0f);
      k[5 * kHead + 7] = fault;
      const Read read = through(type, k, k);
      EXPECT_TRUE(std::isnan(read.k[5 * kHead + 7]));
      EXPECT_TRUE(std::isnan(read.v[5 * kHead + 7]));
      for (std::uint32_t i = 0; i < kHead * kTokens; ++i) {
        const bool is_nan = std::isnan(read.k[i]) || std::isnan(read.v[i]);
        EXPECT_TRUE(i / kHead == 5 || !is_nan) << i;
      }
    }
  }
}

TEST(KvCodec, APoisonedGroupIsNanAllOver) {
  for (const KvType type : {KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
    const GroupCodec codec(type, kHead);
    std::vector<std::uint64_t> memory(codec.bytes() / 8 + 1);
    auto* group = reinterpret_cast<std::byte*>(memory.data());
    codec.poison(group, codec.bytes());
    std::vector<float> k(kHead * kTokens), v(kPadded * kTokens);
    codec.widen(group, k.data(), v.data());
    for (const float value : k) EXPECT_TRUE(std::isnan(value));
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      for (std::uint32_t d = 0; d < kHead; ++d) EXPECT_TRUE(std::isnan(v[t * kPadded + d]));
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test
