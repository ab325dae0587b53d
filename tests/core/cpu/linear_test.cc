// linear() and the packed table: against a plain fmaf loop, bit for bit, for every instruction set, shape and thread
// count.
#include <cmath>
#include <limits>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::linear_test {
namespace {

using backend::Ops;

constexpr Format kTypes[] = {Format::kF32, Format::kBF16, Format::kF16};

// The contract's dot, element by element.
std::vector<float> plain_linear(const std::vector<float>& x, const Matrix& w, std::uint32_t rows,
                                std::span<const float> bias = {}) {
  std::vector<float> out(std::size_t{rows} * w.n);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t n = 0; n < w.n; ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < w.k; ++k) sum = std::fma(x[r * w.k + k], w.values[n * w.k + k], sum);
      out[r * w.n + n] = bias.empty() ? sum : sum + bias[n];
    }
  }
  return out;
}

void expect_plain(Ops& ops, std::uint32_t rows, std::uint32_t n, std::uint32_t k, Format dtype) {
  SCOPED_TRACE(ops.description() + " rows " + std::to_string(rows) + " n " + std::to_string(n) + " k " +
               std::to_string(k) + " " + backend::name_of(dtype));
  Random random(rows * 7919 + n * 31 + k);
  const Matrix w = random_matrix(random, n, k, dtype);
  const std::vector<float> x = random.floats(std::size_t{rows} * k);
  EXPECT_TRUE(same_bits(run_linear(ops, x, *pack(ops, w), rows), plain_linear(x, w, rows)));
}

TEST(Linear, EqualsThePlainLoopForEveryNumberOfRows) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const Format dtype : kTypes) {
      for (std::uint32_t rows = 1; rows <= 40; ++rows) {
        expect_plain(*ops, rows, 100, 37, dtype);
      }
    }
  }
}

TEST(Linear, EqualsThePlainLoopForEveryRemainderOfOutputsAndInputs) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const Format dtype : kTypes) {
      for (std::uint32_t i = 1; i <= 33; ++i) {
        expect_plain(*ops, 1, i, 40 - i, dtype);
        expect_plain(*ops, 7, 65 + i, i, dtype);
      }
    }
  }
}

TEST(Linear, EqualsThePlainLoopForLongInputs) {
  for (const std::string& isa : vector_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const Format dtype : kTypes) {
      for (const std::uint32_t k : {511u, 512u, 513u, 1024u, 1025u, 1537u}) expect_plain(*ops, 29, 33, k, dtype);
    }
  }
}

TEST(Linear, IsTheSameForAnyNumberOfThreads) {
  Random random(3);
  for (const Format dtype : kTypes) {
    for (const std::uint32_t rows : {1u, 9u, 130u}) {
      for (const std::uint32_t n : {40u, 1000u}) {
        const Matrix w = random_matrix(random, n, 700, dtype);
        const std::vector<float> x = random.floats(std::size_t{rows} * w.k);
        const auto one = make_ops("auto", 1);
        const std::vector<float> expected = run_linear(*one, x, *pack(*one, w), rows);
        for (const std::uint32_t threads : {2u, 3u, 7u}) {
          const auto ops = make_ops("auto", threads);
          EXPECT_TRUE(same_bits(run_linear(*ops, x, *pack(*ops, w), rows), expected)) << threads << " threads";
        }
      }
    }
  }
}

TEST(Linear, ARowIsTheSameAloneAndAmongOthers) {
  const std::uint32_t rows = 40;
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    Random random(5);
    const Matrix w = random_matrix(random, 83, 61, Format::kBF16);
    const auto packed = pack(*ops, w);
    const std::vector<float> x = random.floats(std::size_t{rows} * w.k);
    const std::vector<float> all = run_linear(*ops, x, *packed, rows);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::vector<float> row(x.begin() + static_cast<std::ptrdiff_t>(r * w.k),
                                   x.begin() + static_cast<std::ptrdiff_t>((r + 1) * w.k));
      EXPECT_TRUE(same_bits(run_linear(*ops, row, *packed, 1), std::span(all).subspan(r * w.n, w.n))) << "row " << r;
    }
  }
}

TEST(Linear, ReportsANanInOneRowFromTheOthers) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    Random random(6);
    const Matrix w = random_matrix(random, 20, 24, Format::kF32);
    std::vector<float> x = random.floats(std::size_t{13} * w.k);
    const std::vector<float> clean = run_linear(*ops, x, *pack(*ops, w), 13);
    x[5 * w.k + 3] = NAN;
    const std::vector<float> poisoned = run_linear(*ops, x, *pack(*ops, w), 13);
    for (std::size_t i = 0; i < clean.size(); ++i) {
      if (i / w.n == 5) {
        EXPECT_TRUE(std::isnan(poisoned[i]));
      } else {
        EXPECT_EQ(clean[i], poisoned[i]);
      }
    }
  }
}

TEST(Linear, AddsTheBiasWhereThereIsOneAndNothingElsewhere) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    Random random(8);
    const Matrix q = random_matrix(random, 21, 19, Format::kF32);
    const Matrix k = make_matrix(7, 19, Format::kF32, std::vector<float>(7 * 19, 0.25f));
    const std::vector<float> bias = random.floats(q.n);
    const backend::HostMatrix views[] = {q.view(), k.view()};
    const std::span<const float> biases[] = {bias, {}};
    const auto packed = ops->pack(views, biases);
    // A negative product below the smallest subnormal leaves -0, which an added +0 would turn into +0.
    std::vector<float> x = random.floats(2 * std::size_t{q.k});
    std::fill(x.begin(), x.begin() + q.k, 0.0f);
    x[q.k - 1] = -std::numeric_limits<float>::denorm_min();
    const std::vector<float> out = run_linear(*ops, x, *packed, 2);
    const std::vector<float> q_out = plain_linear(x, q, 2, bias);
    const std::vector<float> k_out = plain_linear(x, k, 2);
    ASSERT_TRUE(std::signbit(k_out[0]) && k_out[0] == 0.0f);
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_TRUE(same_bits(std::span(out).subspan(r * 28, 21), std::span(q_out).subspan(r * 21, 21)));
      EXPECT_TRUE(same_bits(std::span(out).subspan(r * 28 + 21, 7), std::span(k_out).subspan(r * 7, 7)));
    }
  }
}

TEST(Linear, IsWithinTheErrorOfItsOwnSumOfF64) {
  const auto ops = make_ops("auto", 1);
  Random random(9);
  const Matrix w = random_matrix(random, 64, 2048, Format::kBF16);
  const std::vector<float> x = random.floats(3 * std::size_t{w.k});
  const std::vector<float> out = run_linear(*ops, x, *pack(*ops, w), 3);
  for (std::size_t i = 0; i < out.size(); ++i) {
    double exact = 0;
    double size = 0;
    for (std::size_t k = 0; k < w.k; ++k) {
      const double product = double{x[i / w.n * w.k + k]} * double{w.values[i % w.n * w.k + k]};
      exact += product;
      size += std::abs(product);
    }
    EXPECT_NEAR(out[i], exact, size * w.k * 0x1p-24);  // one rounding of at most the running sum per k
  }
}

TEST(Embed, GivesBackEveryRowOfConcatenatedTables) {
  for (const Format dtype : kTypes) {
    const auto ops = make_ops("auto", 2);
    Random random(10);
    const Matrix first = random_matrix(random, 37, 45, dtype);
    const Matrix second = random_matrix(random, 24, 45, dtype);
    const backend::HostMatrix views[] = {first.view(), second.view()};
    const auto table = ops->pack(views, {});
    EXPECT_EQ(table->n(), 61u);
    EXPECT_EQ(table->k(), 45u);
    EXPECT_EQ(table->format(), dtype);
    auto out = ops->make_buffer(61, 45);
    const OwnedBatch batch = plain_rows(61);
    ops->begin(batch.view());
    ops->embed(*table, 1.0f, *out);
    std::vector<float> expected = first.values;
    expected.insert(expected.end(), second.values.begin(), second.values.end());
    EXPECT_TRUE(same_bits(read(*ops, *out, 61), expected));
  }
}

TEST(Pack, ReadsUnalignedMatrices) {
  const auto ops = make_ops("auto", 1);
  Random random(11);
  for (const Format dtype : kTypes) {
    const Matrix w = random_matrix(random, 19, 23, dtype);
    std::vector<std::uint8_t> shifted(w.bits.size() + 1);
    std::copy(w.bits.begin(), w.bits.end(), shifted.begin() + 1);
    const backend::HostMatrix view{shifted.data() + 1, dtype, w.n, w.k};
    const std::vector<float> x = random.floats(w.k);
    EXPECT_TRUE(same_bits(run_linear(*ops, x, *ops->pack({&view, 1}, {}), 1), plain_linear(x, w, 1)));
  }
}

TEST(PackDeathTest, RefusesMatricesOfDifferentInputsOrTypes) {
  const auto ops = make_ops("auto", 1);
  Random random(12);
  const Matrix a = random_matrix(random, 4, 8, Format::kF32);
  const Matrix b = random_matrix(random, 4, 9, Format::kF32);
  const Matrix c = random_matrix(random, 4, 8, Format::kBF16);
  const backend::HostMatrix inputs[] = {a.view(), b.view()};
  const backend::HostMatrix types[] = {a.view(), c.view()};
  EXPECT_DEATH(ops->pack(inputs, {}), "CHECK failed.*matrices");
  EXPECT_DEATH(ops->pack(types, {}), "CHECK failed.*format == stored");
}

}  // namespace
}  // namespace quire::cpu::test::linear_test
