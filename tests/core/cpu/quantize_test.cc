// Quantised weights: against the equations of core/backend/step_ops.h written out plainly, bit for bit, for every
// instruction set, number of rows and remainder; and what becomes of numbers that cannot be quantised.
#include "core/backend/weights/quantize.h"

#include <cmath>
#include <limits>

#include "tests/core/cpu/plain_quantised.h"

namespace quire::cpu::test::quantize_test {
namespace {

using backend::Format;
using backend::int4_codes;
using backend::int4_scale;
using backend::Ops;

constexpr std::optional<Format> kKinds[] = {Format::kInt8,       Format::kInt4, Format::kW8A8,
                                            Format::kW8A8PerRow, Format::kW4A8, Format::kFp8};
constexpr Format kTypes[] = {Format::kF32, Format::kBF16, Format::kF16};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void expect_plain(Ops& ops, std::uint32_t rows, std::uint32_t n, std::uint32_t k, std::optional<Format> kind,
                  Format dtype = Format::kBF16) {
  SCOPED_TRACE(ops.description() + " rows " + std::to_string(rows) + " n " + std::to_string(n) + " k " +
               std::to_string(k) + " " + backend::name_of(kind.value_or(dtype)) + " of " + backend::name_of(dtype));
  Random random(rows * 7919 + n * 31 + k);
  const Matrix w = random_matrix(random, n, k, dtype);
  const std::vector<float> x = random.floats(std::size_t{rows} * k);
  EXPECT_TRUE(same_bits(run_linear(ops, x, *pack(ops, w, kind), rows), plain_linear(x, w, kind, rows)));
}

TEST(QuantisedLinear, EqualsThePlainLoopForEveryNumberOfRows) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const std::optional<Format> kind : kKinds) {
      for (std::uint32_t rows = 1; rows <= 40; ++rows) expect_plain(*ops, rows, 100, 103, kind);
    }
  }
}

TEST(QuantisedLinear, EqualsThePlainLoopForEveryRemainderOfOutputsAndInputs) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const std::optional<Format> kind : kKinds) {
      for (std::uint32_t i = 1; i <= 66; ++i) {  // a line of int4's scales is for 64 inputs
        expect_plain(*ops, 1, i, 67 - i, kind);
        expect_plain(*ops, 7, 65 + i, i, kind);
        expect_plain(*ops, 2, 17, 64 + i, kind);
      }
    }
  }
}

TEST(QuantisedLinear, EqualsThePlainLoopForLongInputsOfEveryType) {
  for (const std::string& isa : vector_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const std::optional<Format> kind : kKinds) {
      for (const Format dtype : kTypes) {
        for (const std::uint32_t k : {255u, 256u, 257u, 511u, 1024u, 1537u}) {
          expect_plain(*ops, 1, 70, k, kind, dtype);
          expect_plain(*ops, 29, 33, k, kind, dtype);
        }
      }
    }
  }
}

TEST(QuantisedLinear, IsTheSameForAnyNumberOfThreadsThatPackAndMultiply) {
  Random random(3);
  for (const std::optional<Format> kind : kKinds) {
    for (const std::uint32_t rows : {1u, 9u, 130u}) {
      for (const std::uint32_t n : {40u, 1000u}) {
        const Matrix w = random_matrix(random, n, 700, Format::kBF16);
        const std::vector<float> x = random.floats(std::size_t{rows} * w.k);
        const auto one = make_ops("auto", 1);
        const std::vector<float> expected = run_linear(*one, x, *pack(*one, w, kind), rows);
        for (const std::uint32_t threads : {2u, 3u, 7u}) {
          const auto ops = make_ops("auto", threads);
          EXPECT_TRUE(same_bits(run_linear(*ops, x, *pack(*ops, w, kind), rows), expected)) << threads << " threads";
        }
      }
    }
  }
}

TEST(QuantisedLinear, AddsTheBiasAfterTheScaleAndOnlyWhereThereIsOne) {
  for (const std::string& isa : supported_isas()) {
    for (const std::optional<Format> kind : kKinds) {
      const auto ops = make_ops(isa, 1);
      Random random(8);
      const Matrix q = random_matrix(random, 21, 45, Format::kF32);
      const Matrix k = random_matrix(random, 7, 45, Format::kF32);
      const std::vector<float> bias = random.floats(q.n);
      const backend::HostMatrix views[] = {q.view(), k.view()};
      const std::span<const float> biases[] = {bias, {}};
      const std::vector<float> x = random.floats(q.k);
      const std::vector<float> out = run_linear(*ops, x, *ops->pack(views, biases, kind), 1);
      EXPECT_TRUE(same_bits(std::span(out).first(21), plain_linear(x, q, kind, 1, bias)));
      EXPECT_TRUE(same_bits(std::span(out).subspan(21), plain_linear(x, k, kind, 1)));
    }
  }
}

TEST(QuantisedLinear, ReportsANanOrAnInfinityInOneRowFromTheOthers) {
  for (const std::string& isa : supported_isas()) {
    for (const std::optional<Format> kind : kKinds) {
      for (const float fault : {NAN, kInfinity}) {
        const auto ops = make_ops(isa, 1);
        Random random(6);
        const Matrix w = random_matrix(random, 20, 70, Format::kF32);
        std::vector<float> x = random.floats(std::size_t{13} * w.k);
        const auto packed = pack(*ops, w, kind);
        const std::vector<float> clean = run_linear(*ops, x, *packed, 13);
        x[5 * w.k + 3] = fault;
        const std::vector<float> faulty = run_linear(*ops, x, *packed, 13);
        for (std::size_t i = 0; i < clean.size(); ++i) {
          if (i / w.n == 5) {
            EXPECT_FALSE(std::isfinite(faulty[i]));
          } else {
            EXPECT_EQ(clean[i], faulty[i]);
          }
        }
      }
    }
  }
}

TEST(Quantise, AWeightThatIsNotFiniteMakesItsOutputNanAndNoOther) {
  for (const std::string& isa : supported_isas()) {
    for (const std::optional<Format> kind : kKinds) {
      for (const Format dtype : {Format::kF32, Format::kBF16}) {
        for (const float fault : {NAN, kInfinity, -kInfinity}) {
          const auto ops = make_ops(isa, 1);
          Random random(16);
          Matrix w = random_matrix(random, 20, 70, dtype);
          const std::vector<float> x = random.floats(w.k);
          const std::vector<float> clean = run_linear(*ops, x, *pack(*ops, w, kind), 1);
          const std::vector<float> clean_rows = run_embed(*ops, *pack(*ops, w, kind));
          w.values[9 * w.k + 40] = fault;
          const Matrix broken = make_matrix(w.n, w.k, dtype, w.values);
          const auto packed = pack(*ops, broken, kind);
          const std::vector<float> out = run_linear(*ops, x, *packed, 1);
          for (std::size_t n = 0; n < w.n; ++n) EXPECT_TRUE(n == 9 ? std::isnan(out[n]) : out[n] == clean[n]) << n;
          const std::vector<float> rows = run_embed(*ops, *packed);
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const bool shares_the_scale = i / w.k == 9 && (has_codes_of_8_bits(kind) || (i % w.k) / 32 == 1);
            EXPECT_TRUE(shares_the_scale ? std::isnan(rows[i]) : rows[i] == clean_rows[i]) << i;
          }
        }
      }
    }
  }
}

TEST(Quantise, ATableGivesBackCodesTimesScales) {
  for (const std::optional<Format> kind : kKinds) {
    for (const Format dtype : kTypes) {
      for (const std::uint32_t k : {1u, 31u, 32u, 33u, 64u, 65u, 300u}) {
        const auto ops = make_ops("auto", 2);
        Random random(10);
        const Matrix w = random_matrix(random, 37, k, dtype);
        const auto table = pack(*ops, w, kind);
        EXPECT_EQ(table->format(), kind.value_or(dtype));
        EXPECT_TRUE(same_bits(run_embed(*ops, *table), quantised(w, kind).widened())) << k;
      }
    }
  }
}

TEST(Quantise, IsOffByHalfAStepAtMostAndByAStepAtInt4sUpperEnd) {
  const auto ops = make_ops("auto", 1);
  Random random(11);
  const Matrix w = random_matrix(random, 50, 320, Format::kF32);
  const std::vector<float> int8 = run_embed(*ops, *pack(*ops, w, Format::kInt8));
  const std::vector<float> int4 = run_embed(*ops, *pack(*ops, w, Format::kInt4));
  for (std::size_t i = 0; i < int8.size(); ++i) {
    const std::size_t row = i / w.k * w.k;
    const std::span<const float> whole = std::span(w.values).subspan(row, w.k);
    const std::span<const float> group = std::span(w.values).subspan(i / 32 * 32, 32);  // 320 is a multiple of it
    const auto smaller = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const float step = std::abs(*std::max_element(whole.begin(), whole.end(), smaller)) / 127.0f;
    EXPECT_LE(std::abs(int8[i] - w.values[i]), step * (0.5f + 127 * 0x1p-23f));  // the quotient and product round too
    const float end = *std::max_element(group.begin(), group.end(), smaller) / -8.0f;
    // bf16 rounds the scale by 2^-9 of it: over 8 steps, that is 1/64 of a step.
    const float bound = w.values[i] / end > 7.4f ? 1.0f : 0.5f;
    EXPECT_LE(std::abs(int4[i] - w.values[i]), std::abs(end) * (bound + 0x1p-6f));
  }
}

TEST(Quantise, InFp8IsOffByASixteenthOfTheNumberAtMostAndNearZeroByHalfTheSmallestStep) {
  const auto ops = make_ops("auto", 1);
  Random random(14);
  Matrix w = random_matrix(random, 30, 320, Format::kF32);
  for (float& value : w.values) value *= std::exp2(-static_cast<float>(random.below(16)));
  w = make_matrix(w.n, w.k, Format::kF32, w.values);
  const std::vector<float> out = run_embed(*ops, *pack(*ops, w, Format::kFp8));
  for (std::size_t i = 0; i < out.size(); ++i) {
    float largest = 0.0f;
    for (const float value : std::span(w.values).subspan(i / w.k * w.k, w.k))
      largest = std::max(largest, std::abs(value));
    const float bound = std::max(std::abs(w.values[i]) * 0x1p-4f, largest / 448.0f * 0x1p-10f);
    EXPECT_LE(std::abs(out[i] - w.values[i]), bound * (1.0f + 0x1p-18f)) << w.values[i];
  }
}

TEST(Quantise, NumbersThatHaveACodeComeBackAsTheyWere) {
  const auto ops = make_ops("auto", 1);
  std::vector<float> eighths(64);
  for (std::size_t i = 0; i < eighths.size(); ++i) eighths[i] = (static_cast<float>(i % 16) - 8.0f) * 0.125f;
  const Matrix w4 = make_matrix(1, 64, Format::kF32, eighths);
  EXPECT_TRUE(same_bits(run_embed(*ops, *pack(*ops, w4, Format::kInt4)), eighths));
  std::vector<float> halves(255);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = (static_cast<float>(i) - 127.0f) * 0.5f;
  const Matrix w8 = make_matrix(1, 255, Format::kF32, halves);
  EXPECT_TRUE(same_bits(run_embed(*ops, *pack(*ops, w8, Format::kInt8)), halves));
  std::vector<float> floats;
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    if ((bits & 0x7f) != 0x7f) floats.push_back(f32_of_fp8(static_cast<std::uint8_t>(bits)) * 0.5f);
  }
  const Matrix wf = make_matrix(1, 254, Format::kF32, floats);
  EXPECT_TRUE(same_bits(run_embed(*ops, *pack(*ops, wf, Format::kFp8)), floats));
}

TEST(Quantise, ZerosAndNumbersTooSmallForAScaleAreZero) {
  const auto ops = make_ops("auto", 1);
  for (const std::optional<Format> kind : kKinds) {
    for (const float small : {0.0f, std::numeric_limits<float>::denorm_min(), 0x1p-140f}) {
      const Matrix w = make_matrix(3, 40, Format::kF32, std::vector<float>(120, small));
      for (const float value : run_embed(*ops, *pack(*ops, w, kind))) {
        EXPECT_LE(std::abs(value - small), small);
      }
    }
  }
}

TEST(Quantise, TheFirstOfTwoEquallyLargeNumbersIsMinusEight) {
  std::vector<float> group(32, 0.0f);
  group[3] = 4.0f;
  group[7] = -4.0f;
  EXPECT_EQ(f32_of_bf16(int4_scale(group)), -0.5f);
  std::int8_t codes[32];
  int4_codes(group, int4_scale(group), codes);
  EXPECT_EQ(codes[3], -8);
  EXPECT_EQ(codes[7], 7);  // 8 has no code
}

TEST(Quantise, TakesTheBytesThatPlanningSays) {
  const auto ops = make_ops("auto", 1);
  Random random(12);
  for (const std::uint32_t n : {1u, 16u, 17u, 96u}) {
    for (const std::uint32_t k : {1u, 7u, 64u, 65u, 320u}) {
      const Matrix w = random_matrix(random, n, k, Format::kBF16);
      EXPECT_EQ(pack(*ops, w, std::nullopt)->bytes(), weight_bytes(n, k, Format::kBF16));
      EXPECT_EQ(pack(*ops, w, Format::kInt8)->bytes(), weight_bytes(n, k, Format::kInt8));
      EXPECT_EQ(pack(*ops, w, Format::kInt4)->bytes(), weight_bytes(n, k, Format::kInt4));
      EXPECT_EQ(pack(*ops, w, Format::kW8A8)->bytes(), weight_bytes(n, k, Format::kInt8));
      EXPECT_EQ(pack(*ops, w, Format::kW4A8)->bytes(), weight_bytes(n, k, Format::kInt4));
      EXPECT_EQ(pack(*ops, w, Format::kFp8)->bytes(), weight_bytes(n, k, Format::kInt8));
      EXPECT_EQ(weight_bytes(n, k, Format::kFp8), weight_bytes(n, k, Format::kInt8));
      EXPECT_EQ(pack(*ops, w, Format::kW8A8PerRow)->bytes(), weight_bytes(n, k, Format::kW8A8PerRow));
      EXPECT_EQ(weight_bytes(n, k, Format::kW8A8PerRow), weight_bytes(n, k, Format::kInt8));
      EXPECT_EQ(weight_bytes(n, k, Format::kW8A8), weight_bytes(n, k, Format::kInt8));
      EXPECT_EQ(weight_bytes(n, k, Format::kW4A8), weight_bytes(n, k, Format::kInt4));
    }
  }
  EXPECT_EQ(weight_bytes(96, 320, Format::kInt8), 96u * 320 + 96 * 4);
  EXPECT_EQ(weight_bytes(96, 320, Format::kInt4), 96u * 320 / 2 + 96 * 320 / 32 * 2);
}

TEST(Quantise, ReadsUnalignedMatrices) {
  const auto ops = make_ops("auto", 1);
  Random random(13);
  for (const std::optional<Format> kind : kKinds) {
    for (const Format dtype : kTypes) {
      const Matrix w = random_matrix(random, 19, 43, dtype);
      std::vector<std::uint8_t> shifted(w.bits.size() + 1);
      std::copy(w.bits.begin(), w.bits.end(), shifted.begin() + 1);
      const backend::HostMatrix view{shifted.data() + 1, dtype, w.n, w.k};
      const std::vector<float> x = random.floats(w.k);
      const auto packed = ops->pack({&view, 1}, {}, kind);
      EXPECT_TRUE(same_bits(run_linear(*ops, x, *packed, 1), plain_linear(x, w, kind, 1)));
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::quantize_test
