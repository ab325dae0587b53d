// Norms of groups of columns, LayerNorm, activations, scaled sums, products, soft caps and scaled embeddings: against
// their equations in f64 and, bit for bit, taken literally in f32, on every instruction set.
#include "tests/core/cpu/op_kinds.h"

namespace quire::cpu::test::row_kinds_test {
namespace {

using backend::Activation;
using backend::Ops;

constexpr std::uint32_t kRows = 5;
constexpr std::uint32_t kWidths[] = {1, 7, 8, 15, 16, 17, 31, 64, 172, 300};

void for_isas_and_widths(auto&& body) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    const OwnedBatch batch = plain_rows(kRows);
    ops->begin(batch.view());
    for (const std::uint32_t width : kWidths) {
      SCOPED_TRACE(isa + " width " + std::to_string(width));
      body(*ops, width);
    }
  }
}

// out may differ from the norm in f64 by what f32 rounds: the mean by (width/16 + 6) of max |x|, and the factor, for a
// sum of width/16 + 5 roundings under a root, by half as many and six more.
void expect_norm_in_f64(std::span<const float> x, const NormVectors& vectors, std::span<const float> out) {
  const auto size = static_cast<double>(x.size());
  double mean = 0;
  double largest = 0;
  for (const float value : x) {
    mean += double{value} / size;
    largest = std::max(largest, std::abs(double{value}));
  }
  const double mean_error = vectors.choice == NormChoice::kRms ? 0 : (size / 16 + 6) * 0x1p-24 * largest;
  if (vectors.choice == NormChoice::kRms) mean = 0;
  double variance = 0;
  for (const float value : x) variance += (double{value} - mean) * (double{value} - mean) / size;
  const double r = 1 / std::sqrt(variance + double{vectors.eps});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double normed = (double{x[i]} - mean) * r * double{vectors.scale[i]};
    const double exact = normed + (vectors.bias.empty() ? 0 : double{vectors.bias[i]});
    const double tolerance = std::abs(normed) * ((size / 16 + 7) / 2 + 6) * 0x1p-24 +
                             mean_error * r * std::abs(double{vectors.scale[i]}) + std::abs(exact) * 0x1p-24;
    EXPECT_NEAR(out[i], exact, tolerance) << "value " << i;
  }
}

TEST(NormKinds, EqualTheirEquationsBitForBitAndF64Closely) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    for (const NormChoice choice : kNorms) {
      SCOPED_TRACE(name_of(choice));
      const std::vector<float> x = Random(width).floats(std::size_t{kRows} * width, 3.0f);
      const NormVectors vectors(choice, width, width + 1);
      const OwnedNorm norm(ops, vectors);
      const auto in = buffer_of(ops, x, kRows);
      const auto out = ops.make_buffer(kRows, width);
      ops.norm(*in, norm.get(), kRows, *out);
      const std::vector<float> normed = read(ops, *out, kRows);
      ops.norm(*in, norm.get(), kRows, *in);
      EXPECT_TRUE(same_bits(read(ops, *in, kRows), normed)) << "in place";
      for (std::size_t t = 0; t < kRows; ++t) {
        const auto row = std::span(x).subspan(t * width, width);
        EXPECT_TRUE(same_bits(std::span(normed).subspan(t * width, width), vectors.of(row)));
        expect_norm_in_f64(row, vectors, std::span(normed).subspan(t * width, width));
      }
    }
  });
}

TEST(NormKinds, OfLayersKeepAFaultInItsOwnRow) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    std::vector<float> x = Random(width).floats(std::size_t{kRows} * width);
    x[std::size_t{2} * width] = NAN;
    const OwnedNorm norm(ops, {NormChoice::kLayer, width, 1});
    const auto in = buffer_of(ops, x, kRows);
    ops.norm(*in, norm.get(), kRows, *in);
    const std::vector<float> normed = read(ops, *in, kRows);
    for (std::size_t i = 0; i < normed.size(); ++i) EXPECT_EQ(std::isnan(normed[i]), i / width == 2) << i;
  });
}

TEST(NormColumns, NormsEachGroupByItselfAndLeavesItsNeighbours) {
  for_isas_and_widths([](Ops& ops, std::uint32_t group) {
    for (const std::uint32_t count : {1u, 3u}) {
      for (const bool shared : {true, false}) {
        for (const NormChoice choice : kNorms) {
          SCOPED_TRACE(name_of(choice) + (shared ? " shared, " : " own, ") + std::to_string(count) + " groups");
          const std::uint32_t column = 5;
          const std::uint32_t width = column + count * group + 3;
          std::vector<float> x = Random(group).floats(std::size_t{kRows} * width, 3.0f);
          const NormVectors vectors(choice, shared ? group : count * group, count);
          const OwnedNorm norm(ops, vectors);
          const auto in = buffer_of(ops, x, kRows);
          ops.norm_columns(*in, column, count * group, group, norm.get(), kRows - 1);
          for (std::size_t t = 0; t + 1 < kRows; ++t) {  // the last row is left, too
            for (std::size_t g = 0; g < count; ++g) {
              const auto values = std::span(x).subspan(t * width + column + g * group, group);
              std::ranges::copy(vectors.of(values, shared ? 0 : g * group), values.begin());
            }
          }
          EXPECT_TRUE(same_bits(read(ops, *in, kRows), x));
        }
      }
    }
  });
}

// In f64, without the cancellation of 1 + tanh for gates far below zero.
double exact_gelu(double g) {
  const double u = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
  return g < -2 ? g / (1 + std::exp(-2 * u)) : 0.5 * g * (1 + std::tanh(u));
}

TEST(Activate, EqualsItsEquationBitForBitOfEveryKindGatedAndNot) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    for (const Activation kind : kActivations) {
      for (const bool gated : {true, false}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + (gated ? " gated" : ""));
        const std::uint32_t in_width = gated ? 2 * width : width;
        std::vector<float> x = Random(width).floats(std::size_t{kRows} * in_width, 8.0f);
        x[0] = 0.0f;
        x[in_width] = -200.0f;  // exp overflows
        x[2 * in_width] = 200.0f;
        x[3 * in_width] = NAN;
        const auto in = buffer_of(ops, x, kRows);
        const auto out = ops.make_buffer(kRows, width);
        ops.activate(*in, kind, gated, kRows, *out);
        const std::vector<float> y = read(ops, *out, kRows);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const float* row = x.data() + i / width * in_width;
          const float plain = activated(kind, row[i % width]);
          const float expected = gated ? plain * row[width + i % width] : plain;
          if (std::isnan(row[i % width])) {
            EXPECT_TRUE(std::isnan(y[i]));
          } else {
            EXPECT_TRUE(same_bits({&y[i], 1}, {&expected, 1})) << row[i % width];
          }
        }
      }
    }
  });
}

TEST(Activate, IsCloseToBothGelusAndToSquaredReluInF64) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    const std::vector<float> x = Random(width + 1).floats(std::size_t{kRows} * width, 12.0f);
    const auto in = buffer_of(ops, x, kRows);
    const auto out = ops.make_buffer(kRows, width);
    ops.activate(*in, Activation::kGeluTanh, false, kRows, *out);
    const std::vector<float> gelu = read(ops, *out, kRows);
    ops.activate(*in, Activation::kRelu2, false, kRows, *out);
    const std::vector<float> relu2 = read(ops, *out, kRows);
    ops.activate(*in, Activation::kGelu, false, kRows, *out);
    const std::vector<float> by_erf = read(ops, *out, kRows);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double g = double{x[i]};
      const double exact = exact_gelu(g);
      // exp's argument has four roundings, which its result is off by times that argument; five more follow.
      const double argument = 2 * std::sqrt(2 / M_PI) * std::abs(g + 0.044715 * g * g * g);
      EXPECT_NEAR(gelu[i], exact, std::abs(exact) * (argument * 4 + 5) * 0x1p-23 + 1e-36) << g;
      EXPECT_NEAR(by_erf[i], g / 2 * std::erfc(-g / std::sqrt(2.0)), std::max(1.0, std::abs(g)) * 0x1p-23) << g;
      EXPECT_NEAR(relu2[i], g > 0 ? g * g : 0, g * g * 0x1p-24) << g;
    }
  });
}

TEST(Xielu, EqualsItsEquationBitForBitAndF64Closely) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    std::vector<float> x = Random(width).floats(std::size_t{kRows} * width, 4.0f);
    x[0] = -1e30f;
    x[width] = -1e-7f;
    x[2 * width] = 0.0f;
    const auto in = buffer_of(ops, x, kRows);
    const auto out = ops.make_buffer(kRows, width);
    ops.activate(*in, Activation::kXielu, false, kRows, *out, kXielu);
    const std::vector<float> y = read(ops, *out, kRows);
    const double p = double{kXielu.positive};
    const double n = double{kXielu.negative};
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(xielu(kXielu, x[i]))) << x[i];
      const double g = double{x[i]};
      const double exact = g > 0 ? p * g * g + 0.5 * g : (std::expm1(std::min(-1e-6, g)) - g) * n + 0.5 * g;
      // Terms of opposite signs: a few roundings of the largest.
      EXPECT_NEAR(y[i], exact, std::max(std::abs(g), p * g * g) * 6 * 0x1p-23 + 1e-12) << x[i];
    }
  });
}

TEST(Clip, KeepsWhatIsWithinTheLimitAndNaN) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    std::vector<float> x = Random(width).floats(std::size_t{kRows} * width, 4.0f);
    x[0] = INFINITY;
    x[1] = -1.5f;
    x[2] = std::nextafter(1.5f, 2.0f);
    x[width] = NAN;
    x[2 * width] = 100.0f;  // of a row that is not clipped
    const auto buffer = buffer_of(ops, x, kRows);
    ops.clip(*buffer, 1.5f, kRows - 1);
    const std::vector<float> y = read(ops, *buffer, kRows);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool clipped = i < x.size() - width;
      const float expected = !clipped ? x[i] : x[i] > 1.5f ? 1.5f : x[i] < -1.5f ? -1.5f : x[i];
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else {
        EXPECT_EQ(y[i], expected) << x[i];
      }
    }
  });
}

TEST(MultiplyColumns, TakesAFactorForEachColumn) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    Random random(width);
    const std::vector<float> x = random.floats(std::size_t{kRows} * width);
    const std::vector<float> factors = random.floats(width, 2.0f);
    const auto product = buffer_of(ops, x, kRows);
    ops.multiply_columns(*product, *ops.upload(factors), kRows - 1);
    std::vector<float> expected = x;
    for (std::size_t i = 0; i < x.size() - width; ++i) expected[i] = x[i] * factors[i % width];
    EXPECT_TRUE(same_bits(read(ops, *product, kRows), expected));
  });
}

TEST(CutBelow, LeavesWhatIsAboveTheCutoffOfTheFirstColumns) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    const std::uint32_t all = 2 * width + 1;
    const std::vector<float> x = Random(width).floats(std::size_t{kRows} * all, 4.0f);
    for (const float c : {1.6448536f, -0.5f, 0.0f}) {
      const auto buffer = buffer_of(ops, x, kRows);
      ops.cut_below(*buffer, width, c, kRows - 1);
      std::vector<float> expected = x;
      for (std::size_t row = 0; row + 1 < kRows; ++row) {
        const auto gates = std::span(expected).subspan(row * all, width);
        std::vector<float> off(gates.begin(), gates.end());
        const float mean = sum16(off, false) / static_cast<float>(width);
        for (float& value : off) value = value - mean;
        const float deviation = std::sqrt(sum16(off, true) / static_cast<float>(width));
        for (float& gate : gates) gate = std::max(0.0f, gate - std::fma(deviation, c, mean));
      }
      EXPECT_TRUE(same_bits(read(ops, *buffer, kRows), expected)) << c;
    }
  });
}

TEST(MatchLength, GivesRowsTheLengthOfOthersUnlessTheyAreNearlyZero) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    Random random(width);
    std::vector<float> x = random.floats(std::size_t{kRows} * width, 3.0f);
    const std::vector<float> y = random.floats(std::size_t{kRows} * width);
    for (std::size_t i = 0; i < width; ++i) x[i] *= 1e-4f;
    const auto buffer = buffer_of(ops, x, kRows);
    ops.match_length(*buffer, *buffer_of(ops, y, kRows), 1e-5f, kRows - 1);
    std::vector<float> expected = x;
    for (std::size_t row = 0; row + 1 < kRows; ++row) {
      const auto mean = [&](const std::vector<float>& of) {
        return sum16(std::span(of).subspan(row * width, width), true) / static_cast<float>(width);
      };
      const float factor = std::sqrt(mean(y)) / std::sqrt(std::max(1e-5f, mean(x)));
      for (std::size_t i = 0; i < width; ++i) expected[row * width + i] = x[row * width + i] * factor;
    }
    EXPECT_TRUE(same_bits(read(ops, *buffer, kRows), expected));
  });
}

TEST(Streams, AreMixedAndCorrectedInTheirOrder) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    constexpr std::size_t kStreams = backend::kMaxStreams;
    Random random(width);
    const std::size_t size = std::size_t{kRows} * width;
    std::vector<std::vector<float>> x;
    std::vector<std::unique_ptr<backend::Buffer>> buffers;
    std::vector<backend::Buffer*> from, to;
    for (std::size_t i = 0; i < kStreams; ++i) {
      x.push_back(random.floats(size, 2.0f));
      from.push_back(buffers.emplace_back(buffer_of(ops, x.back(), kRows)).get());
      to.push_back(buffers.emplace_back(buffer_of(ops, x.back(), kRows)).get());
    }
    const std::vector<float> mixes = random.floats(kRows * kStreams * kStreams);
    const std::vector<float> corrections = random.floats(kRows * kStreams);
    std::vector<float> y = random.floats(size, 2.0f);
    const auto change = buffer_of(ops, y, kRows);
    ops.mix(from, *buffer_of(ops, mixes, kRows), kRows, to);
    ops.correct(to, *change, *buffer_of(ops, corrections, kRows), kRows);
    std::vector<std::vector<float>> expected = x;
    for (std::size_t at = 0; at < size; ++at) {
      const std::size_t row = at / width;
      for (std::size_t i = 0; i < kStreams; ++i) {
        for (std::size_t j = 0; j < kStreams; ++j) {
          expected[i][at] = std::fma(x[j][at], mixes[(row * kStreams + i) * kStreams + j], expected[i][at]);
        }
      }
      y[at] = y[at] - expected[0][at];
      for (std::size_t i = 0; i < kStreams; ++i) {
        expected[i][at] = std::fma(y[at], corrections[row * kStreams + i] + 1.0f, expected[i][at]);
      }
    }
    for (std::size_t i = 0; i < kStreams; ++i) EXPECT_TRUE(same_bits(read(ops, *to[i], kRows), expected[i])) << i;
    EXPECT_TRUE(same_bits(read(ops, *change, kRows), y));
  });
}

TEST(AddWithAScale, RoundsOnce) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    Random random(width);
    const std::vector<float> x = random.floats(std::size_t{kRows} * width);
    const std::vector<float> y = random.floats(std::size_t{kRows} * width);
    const auto term = buffer_of(ops, y, kRows);
    for (const float scale : {0.22f, -3.0f, 1.0f}) {
      const auto sum = buffer_of(ops, x, kRows);
      ops.add(*sum, *term, scale, kRows - 1);
      std::vector<float> expected = x;
      for (std::size_t i = 0; i < x.size() - width; ++i) expected[i] = std::fma(y[i], scale, x[i]);
      EXPECT_TRUE(same_bits(read(ops, *sum, kRows), expected)) << scale;
    }
  });
}

TEST(MultiplyBy, TakesItsFactorsFromColumnsOfTheOtherRows) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    Random random(width);
    const std::vector<float> x = random.floats(std::size_t{kRows} * width);
    for (const std::uint32_t column : {0u, 5u}) {
      const std::uint32_t y_width = column + width + 2;
      const std::vector<float> y = random.floats(std::size_t{kRows} * y_width);
      const auto product = buffer_of(ops, x, kRows);
      ops.multiply_by(*product, *buffer_of(ops, y, kRows), column, kRows - 1);
      std::vector<float> expected = x;
      for (std::size_t i = 0; i < x.size() - width; ++i) {
        expected[i] = x[i] * y[i / width * y_width + column + i % width];
      }
      EXPECT_TRUE(same_bits(read(ops, *product, kRows), expected)) << column;
    }
  });
}

TEST(Rescale, EqualsItsEquationBitForBitAndF64Closely) {
  for_isas_and_widths([](Ops& ops, std::uint32_t width) {
    std::vector<float> x = Random(width).floats(std::size_t{kRows} * width, 60.0f);
    x[0] = INFINITY;
    x[width] = -1e30f;
    x[2 * width] = 0.0f;
    for (const float scale : {1.0f, 0.3f}) {
      for (const float cap : {0.0f, 30.0f, 0.7f}) {
        const auto buffer = buffer_of(ops, x, kRows);
        ops.rescale(*buffer, scale, cap, kRows - 1);
        const std::vector<float> y = read(ops, *buffer, kRows);
        std::vector<float> expected = x;
        for (std::size_t i = 0; i < x.size() - width; ++i) {
          expected[i] = rescaled(x[i], scale, cap);
          if (cap == 0.0f) continue;
          EXPECT_LE(std::abs(y[i]), cap);
          const double exact = double{cap} * std::tanh(double{x[i]} * double{scale} / double{cap});
          EXPECT_NEAR(y[i], exact, std::abs(exact) * 5 * 0x1p-23) << x[i];
        }
        EXPECT_TRUE(same_bits(y, expected)) << scale << " capped by " << cap;
      }
    }
  });
}

TEST(EmbedPositions, TakesTheRowsOfThePositionsBehindTheOffset) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const Format dtype : {Format::kF32, Format::kF16, Format::kBF16}) {
      Random random(7);
      const auto table = pack(*ops, random_matrix(random, 21, 19, dtype));
      const std::vector<float> all = run_embed(*ops, *table);
      const auto out = ops->make_buffer(3, 19);
      OwnedBatch batch;
      const std::vector<BlockId> table_of_blocks(2, BlockId{0});
      for (const std::uint32_t position : {15u, 0u, 18u}) batch.add(position, 1, table_of_blocks, 16);
      ops->begin(batch.view());
      ops->embed_positions(*table, 2, *out);
      const std::vector<float> rows = read(*ops, *out, 3);
      ops->collect({});
      for (std::size_t row = 0; row < 3; ++row) {
        const std::size_t from = (batch.positions[row] + 2) * 19;
        EXPECT_TRUE(same_bits(std::span(rows).subspan(row * 19, 19), std::span(all).subspan(from, 19))) << isa;
      }
    }
  }
}

TEST(EmbedWithAScale, MultipliesTheWidenedRows) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    const OwnedBatch batch = plain_rows(kRows);
    for (const auto& [dtype, format] :
         {std::pair{Format::kF32, Format::kF32}, std::pair{Format::kF16, Format::kF16},
          std::pair{Format::kBF16, Format::kBF16}, std::pair{Format::kBF16, Format::kInt8},
          std::pair{Format::kBF16, Format::kInt4}}) {
      Random random(4);
      const auto table = pack(*ops, random_matrix(random, kRows, 83, dtype), format);
      std::vector<float> expected = run_embed(*ops, *table);
      for (float& value : expected) value = value * 9.1f;
      const auto out = ops->make_buffer(kRows, 83);
      ops->begin(batch.view());
      ops->embed(*table, 9.1f, *out);
      EXPECT_TRUE(same_bits(read(*ops, *out, kRows), expected)) << isa << " " << backend::name_of(table->format());
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::row_kinds_test
