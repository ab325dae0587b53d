#include "core/sample/filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "core/sample/reference.h"
#include "tests/core/sample/rows.h"

namespace quire::sample::filters_test {

void PrintTo(const Params& p, std::ostream* out) {
  *out << "temperature " << p.temperature << " top_p " << p.top_p << " min_p " << p.min_p << " top_k " << p.top_k
       << " typical_p " << p.typical_p;
}

namespace {

// Below this z no token can be drawn (noise.h), so whether a filter "keeps" it there means nothing.
constexpr float kDrawable = -26.01f;

// The tokens that the filters keep, as draw() would see them.
std::vector<std::size_t> kept_by_us(const std::vector<float>& logits, const Params& params) {
  Scratch scratch(logits.size());
  const float highest = *std::max_element(logits.begin(), logits.end());
  for (std::size_t i = 0; i < logits.size(); ++i) scratch.z[i] = (logits[i] - highest) / params.temperature;
  const KeptRange range = kept_range(params, logits.size(), scratch);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float z = scratch.z[i];
    if (z >= range.lowest && z <= range.highest && z >= kDrawable) kept.push_back(i);
  }
  return kept;
}

std::vector<std::size_t> kept_by_reference(const std::vector<float>& logits, const Params& params) {
  const std::vector<double> distribution = reference_distribution(logits, params);
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    const double z =
        (static_cast<double>(logits[i]) - static_cast<double>(highest)) / static_cast<double>(params.temperature);
    if (distribution[i] > 0.0 && z >= static_cast<double>(kDrawable)) kept.push_back(i);
  }
  return kept;
}

Params make(float temperature, std::int32_t top_k, float top_p, float min_p, float typical_p = 1.0f) {
  Params params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  params.typical_p = typical_p;
  return params;
}

std::vector<Params> many_params() {
  std::vector<Params> all;
  for (const float temperature : {1.0f, 0.3f, 2.5f}) {
    for (const std::int32_t top_k : {0, 1, 7, 40}) {
      for (const float top_p : {1.0f, 0.999f, 0.9f, 0.5f, 0.01f}) {
        for (const float min_p : {0.0f, 0.001f, 0.2f}) all.push_back(make(temperature, top_k, top_p, min_p));
      }
    }
    for (const float typical_p : {0.001f, 0.2f, 0.6f, 0.95f}) {
      all.push_back(make(temperature, 0, 1.0f, 0.0f, typical_p));
      all.push_back(make(temperature, 40, 0.9f, 0.001f, typical_p));
    }
  }
  return all;
}

class Filters : public ::testing::TestWithParam<Params> {};
INSTANTIATE_TEST_SUITE_P(Params, Filters, ::testing::ValuesIn(many_params()));

TEST_P(Filters, KeepWhatTheReferenceKeeps) {
  for (const std::size_t vocab : {1, 2, 3, 5, 16, 17, 63, 250, 1001, 4096}) {
    for (const float scale : {0.1f, 2.0f, 9.0f, 60.0f}) {
      const std::vector<float> row = bell_row(vocab, scale, static_cast<std::uint32_t>(vocab));
      ASSERT_EQ(kept_by_us(row, GetParam()), kept_by_reference(row, GetParam())) << "V " << vocab << " scale " << scale;
    }
  }
}

TEST_P(Filters, KeepTiesTogetherAsTheReferenceDoes) {
  Params params = GetParam();
  params.temperature = 1.0f;  // z stays on the grid, so ties in f32 and f64 are the same ties
  for (const std::size_t vocab : {2, 17, 250, 4096}) {
    for (const float grid : {0.5f, 2.0f, 100.0f}) {
      const std::vector<float> row = grid_row(vocab, 6.0f, grid, static_cast<std::uint32_t>(vocab));
      ASSERT_EQ(kept_by_us(row, params), kept_by_reference(row, params)) << "V " << vocab << " grid " << grid;
    }
  }
}

TEST_P(Filters, TakeExtremeAndMaskedLogits) {
  const float most = std::numeric_limits<float>::max();
  const float least = 1e-42f;  // subnormal, and coarse enough that dividing by a temperature keeps values apart
  std::vector<std::vector<float>> rows = {{most, -most, 0.0f, most},         {least, -least, 0.0f, 2 * least, -0.0f},
                                          {-kInf, 3.0f, -kInf, 2.5f, -kInf}, {-kInf, -most, -kInf},
                                          {1e30f, 1e30f, 9.9e29f, -1e30f},   {-1e-30f, -2e-30f, 1e-30f, 0.0f},
                                          {16777216.0f, 16777215.0f, 1e-20f}};
  // The mean is a multiple of 2^-40 over a sum: it does not tell such small differences apart.
  if (GetParam().typical_p < 1.0f) rows = {rows[0], rows[2], rows[3], rows[4], rows[6]};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(kept_by_us(rows[i], GetParam()), kept_by_reference(rows[i], GetParam())) << "row " << i;
  }
}

TEST(Filter, TopKAroundTheVocabularyKeepsAllButAsAsked) {
  const std::vector<float> row = bell_row(50, 3.0f, 1);
  EXPECT_EQ(kept_by_us(row, make(1.0f, 49, 1.0f, 0.0f)).size(), 49u);
  EXPECT_EQ(kept_by_us(row, make(1.0f, 50, 1.0f, 0.0f)).size(), 50u);
  EXPECT_EQ(kept_by_us(row, make(1.0f, 51, 1.0f, 0.0f)).size(), 50u);
  EXPECT_EQ(kept_by_us(row, make(1.0f, std::numeric_limits<std::int32_t>::max(), 1.0f, 0.0f)).size(), 50u);
  EXPECT_EQ(kept_by_us(row, make(1.0f, 1, 1.0f, 0.0f)).size(), 1u);
}

TEST(Filter, TopPJustBelowOneDropsOnlyWhatAnF32CannotMiss) {
  const std::vector<float> row = {0.0f, -10.0f, -16.0f, -20.0f, -25.0f};  // 2^-24 is exp(-16.6)
  const float almost_one = std::nextafter(1.0f, 0.0f);
  EXPECT_EQ(kept_by_us(row, make(1.0f, 0, almost_one, 0.0f)), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(kept_by_us(row, make(1.0f, 0, 1.0f, 0.0f)).size(), 5u);
}

TEST(Filter, TopPOfAlmostNothingKeepsTheHighestAndItsTies) {
  const std::vector<float> row = {1.0f, 4.0f, 4.0f, 3.0f};
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(kept_by_us(row, make(1.0f, 0, tiny, 0.0f)), (std::vector<std::size_t>{1, 2}));
}

TEST(Filter, MinPZeroKeepsAllAndOneKeepsTheHighestAndItsTies) {
  const std::vector<float> row = {1.0f, 4.0f, 4.0f, std::nextafter(4.0f, 0.0f)};
  EXPECT_EQ(kept_by_us(row, make(1.0f, 0, 1.0f, 0.0f)).size(), 4u);
  EXPECT_EQ(kept_by_us(row, make(1.0f, 0, 1.0f, 1.0f)), (std::vector<std::size_t>{1, 2}));
}

TEST(Filter, TheRangeDoesNotDependOnTheOrderOfTheTokens) {
  std::vector<float> row = bell_row(3000, 4.0f, 5);
  Scratch scratch(row.size());
  std::mt19937 random(9);
  for (const Params& params : many_params()) {
    std::vector<KeptRange> ranges;
    for (int turn = 0; turn < 3; ++turn) {
      std::shuffle(row.begin(), row.end(), random);
      std::transform(row.begin(), row.end(), scratch.z.begin(), [](float x) { return x - 8.0f; });
      ranges.push_back(kept_range(params, row.size(), scratch));
    }
    for (const KeptRange& range : ranges) {
      ASSERT_EQ(range.lowest, ranges[0].lowest);
      ASSERT_EQ(range.highest, ranges[0].highest);
    }
  }
}

TEST(Filter, TheLargestVocabularyOfEqualLogitsDoesNotOverflowTheMass) {
  Scratch scratch(kMaxVocab);  // every z is 0: 2^20 tokens of 2^40 units each
  EXPECT_EQ(kept_range(make(1.0f, 0, 0.999f, 0.0f), kMaxVocab, scratch).lowest, 0.0f);
  EXPECT_EQ(kept_range(make(1.0f, 0, 1.0f, 0.0f, 0.999f), kMaxVocab, scratch).lowest, 0.0f);
}

// p = 0.6, 0.2, 0.1, 0.1: z = 0, -1.10, -1.79, -1.79, whose mean is -0.58. Distances: 0.58, 0.52, 1.21, 1.21.
const std::vector<float> kSurprising = {std::log(0.1f), std::log(0.6f), std::log(0.2f), std::log(0.1f)};

TEST(Filter, TypicalKeepsWhatIsNearestToTheEntropyAndMayDropTheLikeliest) {
  EXPECT_EQ(kept_by_us(kSurprising, make(1.0f, 0, 1.0f, 0.0f, 0.19f)), (std::vector<std::size_t>{2}));
  EXPECT_EQ(kept_by_us(kSurprising, make(1.0f, 0, 1.0f, 0.0f, 0.21f)), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(kept_by_us(kSurprising, make(1.0f, 0, 1.0f, 0.0f, 0.81f)).size(), 4u) << "ties stay together";
  EXPECT_EQ(kept_by_us(kSurprising, make(1.0f, 0, 1.0f, 0.0f, 1.0f)).size(), 4u);
}

TEST(Filter, TypicalOfAlmostNothingKeepsOneTokenAndItsTies) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(kept_by_us(kSurprising, make(1.0f, 0, 1.0f, 0.0f, tiny)), (std::vector<std::size_t>{2}));
  EXPECT_EQ(kept_by_us({5.0f, 5.0f, -kInf}, make(1.0f, 0, 1.0f, 0.0f, tiny)), (std::vector<std::size_t>{0, 1}));
}

TEST(Filter, TypicalCountsOnlyWhatTheFiltersBeforeItKept) {
  // Of the two likeliest alone, 0.75 and 0.25, the mean z is -0.27: the likeliest is nearer.
  EXPECT_EQ(kept_by_us(kSurprising, make(1.0f, 2, 1.0f, 0.0f, 0.5f)), (std::vector<std::size_t>{1}));
}

}  // namespace
}  // namespace quire::sample::filters_test
