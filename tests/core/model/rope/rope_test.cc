#include "core/model/rope/rope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

namespace quire::model::rope_test {
namespace {

constexpr double kEps = 0x1p-24;  // half a unit in the last place of f32, relative

RopeConfig settings(RopeKind kind, double theta = 10000.0, double factor = 1.0) {
  RopeConfig rope;
  rope.kind = kind;
  rope.theta = theta;
  rope.factor = factor;
  rope.original_positions = 64;
  return rope;
}

double plain_frequency(double theta, std::uint32_t i, std::uint32_t head_dim) {
  return 1.0 / std::pow(theta, 2.0 * i / head_dim);
}

// Rounding the exponent 2i/D to f32 moves the power by up to exponent·eps·ln(theta); then the power and its reciprocal
// round.
double frequency_tolerance(double theta) { return kEps * (std::log(theta) + 3.0); }

void expect_near_relative(float found, double expected, double tolerance, const std::string& where) {
  EXPECT_LE(std::fabs(found - expected), tolerance * std::fabs(expected))
      << where << ": " << found << " vs " << expected;
}

TEST(RopeFrequencies, DefaultIsThetaToTheMinusTwoIOverD) {
  for (const double theta : {100.0, 10000.0, 500000.0, 1e6, 1e8}) {
    for (const std::uint32_t head_dim : {2u, 8u, 48u, 64u, 128u}) {
      const RopeFrequencies found = rope_frequencies(settings(RopeKind::kDefault, theta), head_dim);
      ASSERT_EQ(found.inverse.size(), head_dim / 2);
      EXPECT_EQ(found.inverse[0], 1.0f);
      EXPECT_EQ(found.attention_factor, 1.0f);
      for (std::uint32_t i = 0; i < head_dim / 2; ++i) {
        expect_near_relative(found.inverse[i], plain_frequency(theta, i, head_dim), frequency_tolerance(theta),
                             std::to_string(i));
      }
    }
  }
}

TEST(RopeFrequencies, LinearDividesByItsFactorAndDynamicChangesNothing) {
  const RopeFrequencies plain = rope_frequencies(settings(RopeKind::kDefault), 64);
  const RopeFrequencies linear = rope_frequencies(settings(RopeKind::kLinear, 10000.0, 3.0), 64);
  const RopeFrequencies dynamic = rope_frequencies(settings(RopeKind::kDynamic, 10000.0, 3.0), 64);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(linear.inverse[i], plain.inverse[i] / 3.0f);
  EXPECT_EQ(dynamic.inverse, plain.inverse);
}

// Meta's definition in double: waves longer than original/low are slowed by factor, shorter than original/high kept.
TEST(RopeFrequencies, Llama3SlowsLongWavesKeepsShortOnesAndBlendsBetween) {
  RopeConfig rope = settings(RopeKind::kLlama3, 10000.0, 8.0);
  rope.low_freq_factor = 1.0;
  rope.high_freq_factor = 4.0;
  rope.original_positions = 512;
  const RopeFrequencies found = rope_frequencies(rope, 64);
  int kept = 0, slowed = 0, blended = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const double plain = plain_frequency(rope.theta, i, 64);
    const double wave = 2 * std::numbers::pi / plain;
    double expected = plain;
    if (wave > 512.0) {
      expected = plain / 8.0;
      ++slowed;
    } else if (wave >= 128.0) {
      const double smooth = (512.0 / wave - 1.0) / 3.0;
      expected = (1 - smooth) * plain / 8.0 + smooth * plain;
      ++blended;
    } else {
      ++kept;
    }
    // Blending: turns has ~6 roundings and is subtracted from low: relative to `expected` at most 8x (the factor) as
    // large.
    expect_near_relative(found.inverse[i], expected, frequency_tolerance(rope.theta) + 8 * 8 * kEps, std::to_string(i));
  }
  EXPECT_TRUE(kept > 0 && slowed > 0 && blended > 0);
}

double yarn_dimension(double rotations, double original, double theta, double head_dim) {
  return head_dim * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
}

TEST(RopeFrequencies, YarnRampsFromExtrapolationToInterpolation) {
  for (const bool truncate : {true, false}) {
    RopeConfig rope = settings(RopeKind::kYarn, 10000.0, 4.0);
    rope.original_positions = 2048;
    rope.truncate = truncate;
    const RopeFrequencies found = rope_frequencies(rope, 64);
    double low = yarn_dimension(32, 2048, 10000, 64);
    double high = yarn_dimension(1, 2048, 10000, 64);
    if (truncate) low = std::floor(low), high = std::ceil(high);
    for (std::uint32_t i = 0; i < 32; ++i) {
      const double plain = plain_frequency(rope.theta, i, 64);
      const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
      const double expected = plain / 4.0 * ramp + plain * (1 - ramp);
      expect_near_relative(found.inverse[i], expected, frequency_tolerance(rope.theta) + 8 * 4 * kEps,
                           std::to_string(i));
    }
    EXPECT_FLOAT_EQ(found.attention_factor, static_cast<float>(0.1 * std::log(4.0) + 1.0));
  }
}

TEST(RopeFrequencies, YarnsAttentionFactorIsGivenOrFollowsFromTheMscales) {
  RopeConfig rope = settings(RopeKind::kYarn, 10000.0, 40.0);
  rope.mscale = 1.0;
  EXPECT_FLOAT_EQ(rope_frequencies(rope, 64).attention_factor, static_cast<float>(0.1 * std::log(40.0) + 1.0))
      << "one alone counts as none";
  rope.mscale_all_dim = 0.5;
  EXPECT_FLOAT_EQ(rope_frequencies(rope, 64).attention_factor,
                  static_cast<float>((0.1 * std::log(40.0) + 1.0) / (0.05 * std::log(40.0) + 1.0)));
  rope.attention_factor = 0.75;
  EXPECT_EQ(rope_frequencies(rope, 64).attention_factor, 0.75f);
  rope.attention_factor.reset();
  rope.factor = 1.0;
  EXPECT_EQ(rope_frequencies(rope, 64).attention_factor, 1.0f);
}

// Degenerate ranges stay finite: low == high, and a ramp that lies outside the dimensions.
TEST(RopeFrequencies, YarnStaysFiniteWhereItsRampHasNoWidth) {
  RopeConfig rope = settings(RopeKind::kYarn, 10000.0, 4.0);
  for (const std::uint32_t original : {1u, 6u, 7u, 64u, 1u << 30}) {
    for (const std::uint32_t head_dim : {2u, 4u, 64u}) {
      rope.original_positions = original;
      for (const float value : rope_frequencies(rope, head_dim).inverse) EXPECT_TRUE(std::isfinite(value) && value > 0);
    }
  }
}

// The angle is what f32 makes of position · frequency; its sine and cosine are the double ones, rounded.
TEST(RopeAngles, AreRoundedDoubleSinesOfF32Angles) {
  const RopeConfig rope = settings(RopeKind::kDefault);
  const RopeFrequencies frequencies = rope_frequencies(rope, 16);
  const RopeAngles angles = rope_angles(rope, 16, 4096);
  ASSERT_EQ(angles.cosines.size(), 4096u * 8);
  int different = 0;
  for (std::uint32_t position = 0; position < 4096; ++position) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      const double angle = static_cast<float>(position) * frequencies.inverse[i];
      different += angles.cosines[position * 8 + i] != static_cast<float>(std::cos(angle));
      different += angles.sines[position * 8 + i] != static_cast<float>(std::sin(angle));
    }
  }
  EXPECT_LE(different, 1) << "only a double result within 1e-16 of an f32 tie may round the other way";
}

TEST(RopeAngles, CarryTheAttentionFactor) {
  RopeConfig rope = settings(RopeKind::kYarn, 10000.0, 4.0);
  const RopeAngles plain = [&] {
    rope.attention_factor = 1.0;
    return rope_angles(rope, 8, 16);
  }();
  rope.attention_factor = 1.25;
  const RopeAngles scaled = rope_angles(rope, 8, 16);
  for (std::size_t i = 0; i < plain.cosines.size(); ++i) {
    EXPECT_EQ(scaled.cosines[i], plain.cosines[i] * 1.25f);
    EXPECT_EQ(scaled.sines[i], plain.sines[i] * 1.25f);
  }
}

// theta^(2i/r), the factors and their quotient in double.
void expect_longrope(const RopeFrequencies& found, const RopeConfig& rope, const std::vector<double>& factors) {
  const auto turned = static_cast<std::uint32_t>(2 * factors.size());
  ASSERT_EQ(found.inverse.size(), factors.size());
  for (std::uint32_t i = 0; i < factors.size(); ++i) {
    // As plain ones; the factor and its product with the power round, too.
    expect_near_relative(found.inverse[i], plain_frequency(rope.theta, i, turned) / factors[i],
                         frequency_tolerance(rope.theta) + 2 * kEps, std::to_string(i));
  }
}

RopeConfig longrope() {
  RopeConfig rope = settings(RopeKind::kLongRope, 10000.0, 8.0);
  rope.short_factors = {1.0, 1.05, 1.1, 1.25, 1.5, 2.0};
  rope.long_factors = {1.5, 2.0, 3.0, 4.7, 6.3, 9.9};
  return rope;
}

TEST(RopeFrequencies, LongRopeDividesEachPairsByAFactorOfItsOwn) {
  RopeConfig rope = longrope();
  for (const auto& [head_dim, fraction] : {std::pair{12u, 1.0}, {16u, 0.75}, {24u, 0.5}}) {
    rope.rotary_fraction = fraction;
    rope.is_long = false;
    expect_longrope(rope_frequencies(rope, head_dim), rope, rope.short_factors);
    rope.is_long = true;
    expect_longrope(rope_frequencies(rope, head_dim), rope, rope.long_factors);
  }
}

// sqrt(1 + ln(factor) / ln(original)) for short and long alike, in double and rounded once. Two logarithms, a quotient
// and a root within an ulp of double each leave one f32 rounding.
TEST(RopeFrequencies, LongRopesAttentionFactorFollowsFromItsLengthsUnlessItIsGiven) {
  for (const bool is_long : {false, true}) {
    RopeConfig rope = longrope();
    rope.is_long = is_long;
    for (const auto& [factor, original] : {std::pair{8.0, 64u}, {32.0, 4096u}, {1.5, 2u}}) {
      rope.factor = factor;
      rope.original_positions = original;
      expect_near_relative(rope_frequencies(rope, 12).attention_factor,
                           std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original))), 1.01 * kEps,
                           "computed");
    }
    rope.factor = 1.0;
    EXPECT_EQ(rope_frequencies(rope, 12).attention_factor, 1.0f);
    rope.attention_factor = 1.19;
    EXPECT_EQ(rope_frequencies(rope, 12).attention_factor, 1.19f);
  }
}

TEST(RopeFrequencies, OfPartOfAHeadAreThoseOfAHeadOfThatSize) {
  for (const RopeKind kind : {RopeKind::kDefault, RopeKind::kLinear, RopeKind::kLlama3, RopeKind::kYarn}) {
    RopeConfig rope = settings(kind, 10000.0, 4.0);
    const std::vector<float> whole = rope_frequencies(rope, 16).inverse;
    for (const auto& [head_dim, fraction] : {std::pair{32u, 0.5}, {64u, 0.25}, {20u, 0.8}}) {
      rope.rotary_fraction = fraction;
      EXPECT_EQ(rope.rotary_dims(head_dim), 16u);
      EXPECT_EQ(rope_frequencies(rope, head_dim).inverse, whole) << head_dim;
    }
  }
}

TEST(RopeAngles, OfPartOfAHeadHaveAColumnForEachPairThatTurns) {
  RopeConfig rope = settings(RopeKind::kDefault);
  const RopeAngles whole = rope_angles(rope, 8, 40);
  rope.rotary_fraction = 0.25;
  const RopeAngles part = rope_angles(rope, 32, 40);
  EXPECT_EQ(part.cosines.size(), 40u * 4);
  EXPECT_EQ(part.cosines, whole.cosines);
  EXPECT_EQ(part.sines, whole.sines);
}

TEST(RopeAngles, OfLongRopeCarryItsAttentionFactor) {
  RopeConfig rope = longrope();
  const RopeAngles computed = rope_angles(rope, 12, 8);
  const RopeFrequencies frequencies = rope_frequencies(rope, 12);
  rope.attention_factor = 1.0;
  const RopeAngles plain = rope_angles(rope, 12, 8);
  EXPECT_GT(frequencies.attention_factor, 1.0f);
  for (std::size_t i = 0; i < plain.cosines.size(); ++i) {
    EXPECT_EQ(computed.cosines[i], plain.cosines[i] * frequencies.attention_factor);
    EXPECT_EQ(computed.sines[i], plain.sines[i] * frequencies.attention_factor);
  }
}

}  // namespace
}  // namespace quire::model::rope_test
