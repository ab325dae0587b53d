#include "core/base/float_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quire {
namespace {

// A small float's value from its definition, in f64 (which holds every bf16 and f16 exactly).
double value_of(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & top;
  const std::uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const double sign = (bits >> (exponent_bits + fraction_bits)) & 1u ? -1.0 : 1.0;
  if (exponent == top && fraction != 0) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == top) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1u << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

void expect_same(double want, float got, std::uint32_t bits) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << bits;
  } else {
    EXPECT_EQ(want, static_cast<double>(got)) << bits;
    EXPECT_EQ(std::signbit(want), std::signbit(got)) << bits;
  }
}

TEST(FloatBits, EveryBf16HasTheValueOfItsDefinition) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    expect_same(value_of(bits, 8, 7), f32_of_bf16(static_cast<std::uint16_t>(bits)), bits);
  }
}

TEST(FloatBits, EveryF16HasTheValueOfItsDefinition) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    expect_same(value_of(bits, 5, 10), f32_of_f16(static_cast<std::uint16_t>(bits)), bits);
  }
}

TEST(FloatBits, EveryF16NanKeepsItsPayload) {
  for (std::uint32_t fraction = 1; fraction < 1024; ++fraction) {
    const auto f32 = std::bit_cast<std::uint32_t>(f32_of_f16(static_cast<std::uint16_t>(0x7c00 | fraction)));
    EXPECT_EQ(f32, 0x7f800000u | fraction << 13);
  }
}

TEST(FloatBits, EveryBf16ComesBackAsItself) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = f32_of_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f32_of_bf16(bf16_of_f32(value))));
    } else {
      EXPECT_EQ(bf16_of_f32(value), bits);
    }
  }
}

// Between each bf16 and its neighbour away from zero: below the middle goes down, above goes up, the middle goes to
// even.
TEST(FloatBits, EveryGapRoundsToNearestAndItsMiddleToEven) {
  for (const std::uint32_t sign : {0u, 0x8000u}) {
    for (std::uint32_t magnitude = 0; magnitude < 0x7f80; ++magnitude) {
      const std::uint32_t low = sign | magnitude;
      const std::uint32_t middle = low << 16 | 0x8000u;
      const auto rounded = [](std::uint32_t bits) -> std::uint32_t { return bf16_of_f32(std::bit_cast<float>(bits)); };
      EXPECT_EQ(rounded(low << 16 | 1), low);
      EXPECT_EQ(rounded(middle - 1), low);
      EXPECT_EQ(rounded(middle), low + (low & 1));
      EXPECT_EQ(rounded(middle + 1), low + 1);
      EXPECT_EQ(rounded(low << 16 | 0xffff), low + 1);
    }
  }
}

TEST(FloatBits, AnyNanStaysANanOfItsSign) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0x7f80ffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
    const std::uint16_t half = bf16_of_f32(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(f32_of_bf16(half))) << bits;
    EXPECT_EQ(half >> 15, bits >> 31) << bits;
  }
}

TEST(FloatBits, EveryF16ComesBackAsItselfAndItsGapsRoundToNearestAndTheirMiddlesToEven) {
  for (std::uint32_t low = 0; low < 0x7c00; ++low) {
    const float below = f32_of_f16(static_cast<std::uint16_t>(low));
    const float above = low == 0x7bff ? 65536.0f : f32_of_f16(static_cast<std::uint16_t>(low + 1));
    const float middle = (below + above) / 2;
    for (const float sign : {1.0f, -1.0f}) {
      const std::uint32_t bit = sign < 0 ? 0x8000 : 0;
      EXPECT_EQ(f16_of_f32(sign * below), bit | low);
      EXPECT_EQ(f16_of_f32(sign * std::nextafter(middle, 0.0f)), bit | low);
      EXPECT_EQ(f16_of_f32(sign * middle), bit | (low + (low & 1)));
      EXPECT_EQ(f16_of_f32(sign * std::nextafter(middle, 1e6f)), bit | (low + 1));
    }
  }
  EXPECT_EQ(f16_of_f32(INFINITY), 0x7c00);
  EXPECT_EQ(f16_of_f32(-1e30f), 0xfc00);
  EXPECT_TRUE(std::isnan(f32_of_f16(f16_of_f32(NAN))));
}

TEST(FloatBits, EveryFp8MeansItsSignExponentAndFractionAndComesBackAsItself) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const int exponent = static_cast<int>(bits >> 3 & 15);
    const double fraction = (bits & 7) / 8.0;
    const double size = exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
    const float value = f32_of_fp8(static_cast<std::uint8_t>(bits));
    EXPECT_EQ(fp8_of_f32(value), bits);
    if ((bits & 127) == 127) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      EXPECT_EQ(value, static_cast<float>(bits >> 7 != 0 ? -size : size)) << bits;
      EXPECT_EQ(std::signbit(value), bits >> 7 != 0);
    }
  }
}

TEST(FloatBits, EveryFp8GapRoundsToNearestAndItsMiddleToEven) {
  for (std::uint32_t low = 0; low < 126; ++low) {  // and 127 is no number
    const float below = f32_of_fp8(static_cast<std::uint8_t>(low));
    const float above = f32_of_fp8(static_cast<std::uint8_t>(low + 1));
    const float middle = (below + above) / 2;
    for (const float sign : {1.0f, -1.0f}) {
      const std::uint32_t bit = sign < 0 ? 128 : 0;
      EXPECT_EQ(fp8_of_f32(sign * std::nextafter(below, 1000.0f)), bit | low);
      EXPECT_EQ(fp8_of_f32(sign * std::nextafter(middle, 0.0f)), bit | low);
      EXPECT_EQ(fp8_of_f32(sign * middle), bit | (low + (low & 1)));
      EXPECT_EQ(fp8_of_f32(sign * std::nextafter(middle, 1000.0f)), bit | (low + 1));
      EXPECT_EQ(fp8_of_f32(sign * std::nextafter(above, 0.0f)), bit | (low + 1));
    }
  }
}

TEST(FloatBits, Fp8GoesNoFurtherThan448AndTakesNoInfinity) {
  for (const float large : {448.0f, 449.0f, 464.0f, 480.0f, 1e38f}) {
    EXPECT_EQ(fp8_of_f32(large), 0x7e) << large;
    EXPECT_EQ(fp8_of_f32(-large), 0xfe) << large;
  }
  const float infinity = std::bit_cast<float>(0x7f800000u);
  for (const float fault : {infinity, std::bit_cast<float>(0x7fc00000u), std::bit_cast<float>(0x7f800001u)}) {
    EXPECT_EQ(fp8_of_f32(fault), 0x7f);
    EXPECT_EQ(fp8_of_f32(-fault), 0xff);
  }
}

}  // namespace
}  // namespace quire
