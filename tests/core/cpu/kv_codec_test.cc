// What storing K and V in fewer bits costs, what it never hides, and that the kernels read what was stored.
#include "core/cpu/kv_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/cpu/isa/select.h"
#include "tests/core/cpu/stored_kv.h"

namespace quire::cpu::test::kv_codec_test {
namespace {

constexpr std::uint32_t kHead = 18;
constexpr std::uint32_t kTokens = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Sixteen tokens [16][D] through a group.
GroupValues through(KvType type, const std::vector<float>& k, const std::vector<float>& v) {
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
  return values_of(type, kHead, group);
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
      const GroupValues read = through(type, k, v);
      const std::vector<float> int4_keys = keys_as_int4(k);
      for (std::uint32_t t = 0; t < kTokens; ++t) {
        const auto key = type == KvType::kInt4 ? token(int4_keys, t) : as_stored(type, token(k, t));
        EXPECT_TRUE(same_bits(token(read.k, t), key)) << backend::name_of(type) << limit;
        EXPECT_TRUE(same_bits(token(read.v, t), as_stored(type, token(v, t)))) << backend::name_of(type) << limit;
      }
    }
  }
}

TEST(KvCodec, Int8IsOffByHalfAStepAtMostAndOneTokenDoesNotChangeAnother) {
  Random random(4);
  std::vector<float> k = random.floats(kHead * kTokens, 1.0f);
  std::vector<float> v = random.floats(kHead * kTokens, 1.0f);
  for (std::uint32_t d = 0; d < kHead; ++d) v[3 * kHead + d] *= 1000.0f;
  const GroupValues read = through(KvType::kInt8, k, v);
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
  const GroupValues read = through(KvType::kInt4, k, v);
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
    const GroupValues read = through(KvType::kInt4, k, k);
    for (std::uint32_t i = 0; i < kHead * kTokens; ++i) {
      EXPECT_EQ(std::isnan(read.k[i]), i % kHead == 7) << i;
      EXPECT_EQ(std::isnan(read.v[i]), i / kHead == 5) << i;
    }
  }
}

TEST(KvCodec, ZerosAndNumbersTooSmallForAScaleAreZeros) {
  std::vector<float> tiny(kHead * kTokens, 1e-45f);
  for (const KvType type : {KvType::kFp8, KvType::kInt8}) {
    const GroupValues read = through(type, tiny, std::vector<float>(kHead * kTokens, 0.0f));
    for (const float value : read.k) EXPECT_EQ(value, 0.0f);
    for (const float value : read.v) EXPECT_EQ(value, 0.0f);
  }
}

TEST(KvCodec, AFaultIsNeverRoundedAwayAndStaysWithItsToken) {
  for (const KvType type : {KvType::kFp8, KvType::kInt8}) {
    for (const float fault : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      std::vector<float> k(kHead * kTokens, 1.0f);
      k[5 * kHead + 7] = fault;
      const GroupValues read = through(type, k, k);
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
    const GroupValues read = values_of(type, kHead, group);
    for (const float value : read.k) EXPECT_TRUE(std::isnan(value));
    for (const float value : read.v) EXPECT_TRUE(std::isnan(value));
  }
}

// A group of random bytes in memory.
struct RandomGroup {
  RandomGroup(KvType type, std::uint32_t head_dim, Random& random)
      : codec(type, head_dim), memory((codec.bytes() + 7) / 8) {
    for (std::size_t i = 0; i < codec.bytes(); ++i) data()[i] = static_cast<std::byte>(random.below(256));
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(memory.data()); }

  GroupCodec codec;
  std::vector<std::uint64_t> memory;
};

bool same_or_both_nan(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// out[t] = fma over d ascending of x[d] * k[t, d].
std::vector<float> scores(const Kernels& kernels, KvType type, std::uint32_t head_dim, const std::byte* group,
                          const std::vector<float>& x) {
  const void* const list[1 + kGroupsAhead] = {group};
  std::vector<float> out(kTokens);
  GemmArgs args;
  args.x = x.data();
  args.rows = 1;
  args.k = head_dim;
  args.panel_list = list;
  args.n = kTokens;
  args.out = out.data();
  kernels.score[static_cast<int>(type)](args);
  return out;
}

// e[t] * v[t, :], from +0, for one token t.
std::vector<float> weighed(const Kernels& kernels, KvType type, std::uint32_t head_dim, const std::byte* group,
                           std::uint32_t t, float e) {
  const GroupCodec codec(type, head_dim);
  const void* const list[kSpanGroups + kGroupsAhead] = {group + codec.v_offset()};
  const std::vector<float> es(kTokens, e);
  std::vector<float> out((head_dim + kLanes - 1) / kLanes * kLanes);
  WeighArgs args;
  args.e = es.data();
  args.rows = 1;
  args.first = t;
  args.last = t + 1;
  args.groups = list;
  args.row_bytes = codec.v_row_bytes();
  args.width = static_cast<std::uint32_t>(out.size());
  args.o = out.data();
  kernels.weigh[static_cast<int>(type)](args);
  out.resize(head_dim);
  return out;
}

TEST(KvCodec, EveryInstructionSetReadsEveryByteAndScaleAsTheHeaderSays) {
  Random random(9);
  for (const std::string& isa : supported_isas()) {
    const Kernels& kernels = select_kernels(isa);
    for (const KvType type : {KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
      for (const std::uint32_t head_dim : {2u, 6u, 16u, 18u, 34u, 48u, 64u, 80u, 112u, 128u}) {
        RandomGroup group(type, head_dim, random);  // scales of any size, NaN and infinities among them
        const GroupValues values = values_of(type, head_dim, group.data());
        const std::vector<float> x = random.floats(head_dim);
        const std::vector<float> z = scores(kernels, type, head_dim, group.data(), x);
        for (std::uint32_t t = 0; t < kTokens; ++t) {
          float sum = 0;
          for (std::uint32_t d = 0; d < head_dim; ++d) sum = std::fma(x[d], values.k[t * head_dim + d], sum);
          EXPECT_TRUE(same_or_both_nan(z[t], sum)) << isa << " " << backend::name_of(type) << " " << head_dim;
          const std::vector<float> o = weighed(kernels, type, head_dim, group.data(), t, x[0]);
          for (std::uint32_t d = 0; d < head_dim; ++d) {
            const float value = std::fma(x[0], values.v[t * head_dim + d], 0.0f);
            EXPECT_TRUE(same_or_both_nan(o[d], value)) << isa << " " << backend::name_of(type) << " " << head_dim;
          }
        }
      }
    }
  }
}

TEST(KvCodec, EveryInstructionSetReadsAllCodesOfFp8AndInt8WithEveryKindOfScale) {
  constexpr std::uint32_t kDims = 2;  // the second is zero
  for (const std::string& isa : supported_isas()) {
    const Kernels& kernels = select_kernels(isa);
    for (const float scale : {0.0f, 1e-45f, 1e-39f, 0.3f, 1e38f, std::numeric_limits<float>::quiet_NaN()}) {
      for (const KvType type : {KvType::kFp8, KvType::kInt8}) {
        for (std::uint32_t first = 0; first < 256; first += kTokens) {
          std::vector<float> memory(128, scale);  // more than a group has
          auto* group = reinterpret_cast<std::byte*>(memory.data());
          std::fill_n(group, kTokens * kDims, std::byte{0});
          for (std::uint32_t t = 0; t < kTokens; ++t) group[t] = static_cast<std::byte>(first + t);
          const GroupValues values = values_of(type, kDims, group);
          const std::vector<float> z = scores(kernels, type, kDims, group, {1.0f, 0.0f});
          for (std::uint32_t t = 0; t < kTokens; ++t) {
            const float value = values.k[t * kDims] + 0.0f;  // a sum has no -0
            EXPECT_TRUE(same_or_both_nan(z[t], value)) << isa << " " << first + t << " " << z[t] << " " << value;
          }
        }
      }
    }
  }
}

// A latent's rows [16][D] through a group: K as its panel has it, and V.
struct LatentGroup {
  LatentGroup(KvType type, std::uint32_t head, std::uint32_t latent, const std::vector<float>& rows,
              const std::string& isa = "auto")
      : kernels(select_kernels(isa)),
        codec(type, head, latent),
        memory(codec.bytes() / 8 + 1),
        panel(codec.panel_bytes() / 4 + 1) {
    codec.poison(group(), codec.bytes());
    for (std::uint32_t t = 0; t < kTokens; ++t) codec.store(group(), t, rows.data() + t * head, nullptr);
    read();
  }
  void read() { codec.panel(kernels, group(), reinterpret_cast<std::byte*>(panel.data())); }
  std::byte* group() { return reinterpret_cast<std::byte*>(memory.data()); }
  float key(KvType type, std::uint32_t t, std::uint32_t d) const {
    const auto* bytes = reinterpret_cast<const std::byte*>(panel.data());
    switch (type) {
      case KvType::kBF16:
        return f32_of_bf16(reinterpret_cast<const std::uint16_t*>(bytes)[(d / 2 * kTokens + t) * 2 + d % 2]);
      default:
        return panel[d * kTokens + t];
    }
  }

  const Kernels& kernels;
  GroupCodec codec;
  std::vector<std::uint64_t> memory;
  std::vector<float> panel;
};

TEST(LatentCodec, KeysAreTheWholeRowAsStoredAndPartsOfARowHaveTheirOwnScales) {
  Random random(8);
  constexpr std::uint32_t kDim = 44;
  constexpr std::uint32_t kLatent = 34;
  std::vector<float> rows = random.floats(kDim * kTokens, 2.0f);
  for (std::uint32_t t = 0; t < kTokens; ++t) {
    for (std::uint32_t d = 0; d < kDim - kLatent; ++d) rows[t * kDim + d] *= 100.0f;  // the part that turns is larger
  }
  for (const std::string& isa : supported_isas()) {
    for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8}) {
      SCOPED_TRACE(isa + " " + backend::name_of(type));
      const LatentGroup stored(type, kDim, kLatent, rows, isa);
      EXPECT_EQ(stored.codec.v_offset(), 0u);
      for (std::uint32_t t = 0; t < kTokens; ++t) {
        const auto first = rows.begin() + t * kDim;
        const std::vector<float> rest = as_stored(type, {first, first + (kDim - kLatent)});
        const std::vector<float> latent = as_stored(type, {first + (kDim - kLatent), first + kDim});
        for (std::uint32_t d = 0; d < kDim; ++d) {
          const float expected = d < kDim - kLatent ? rest[d] : latent[d - (kDim - kLatent)];
          ASSERT_EQ(stored.key(type, t, d), expected) << t << " " << d;
        }
      }
    }
  }
}

TEST(LatentCodec, ACopiedTokenIsThatToken) {
  Random random(9);
  constexpr std::uint32_t kDim = 20;
  constexpr std::uint32_t kLatent = 12;
  const std::vector<float> a = random.floats(kDim * kTokens, 1.0f);
  const std::vector<float> b = random.floats(kDim * kTokens, 5.0f);
  for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8}) {
    LatentGroup from(type, kDim, kLatent, a);
    LatentGroup to(type, kDim, kLatent, b);
    const LatentGroup before(type, kDim, kLatent, b);
    to.codec.copy(from.group(), 3, to.group(), 11);
    to.read();
    for (std::uint32_t t = 0; t < kTokens; ++t) {
      for (std::uint32_t d = 0; d < kDim; ++d) {
        ASSERT_EQ(to.key(type, t, d), t == 11 ? from.key(type, 3, d) : before.key(type, t, d))
            << backend::name_of(type);
      }
    }
  }
}

TEST(LatentCodec, ATokenOfDeepSeekV3TakesOneRowOf576Numbers) {
  EXPECT_EQ(GroupCodec(KvType::kBF16, 576, 512).bytes(), 16u * 1152);
  EXPECT_EQ(GroupCodec(KvType::kFp8, 576, 512).bytes(), 16u * 576);
  EXPECT_EQ(GroupCodec(KvType::kInt8, 576, 512).bytes(), 16u * (576 + 8));
}

}  // namespace
}  // namespace quire::cpu::test::kv_codec_test
