#include "core/sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "core/sample/filters.h"
#include "core/sample/noise.h"
#include "core/sample/reference.h"
#include "tests/core/sample/rows.h"
#include "tests/support/cases.h"

namespace quire::sample::sampler_test {
namespace {

Params make(float temperature, std::int32_t top_k = 0, float top_p = 1.0f, float min_p = 0.0f, std::uint64_t seed = 1,
            float typical_p = 1.0f) {
  Params params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  params.seed = seed;
  params.typical_p = typical_p;
  return params;
}

TokenId drawn(const std::vector<float>& row, const Params& params, std::uint32_t position) {
  Scratch scratch(row.size());
  const SampledToken result = draw(row, params, position, scratch);
  EXPECT_TRUE(result.finite);
  return result.token;
}

// The card, word for word: every token's noise, no bound, no skipping.
TokenId drawn_plainly(const std::vector<float>& row, const Params& params, std::uint32_t position) {
  Scratch scratch(row.size());
  const float highest = *std::max_element(row.begin(), row.end());
  std::vector<float> z(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) z[i] = (row[i] - highest) / params.temperature;
  std::copy(z.begin(), z.end(), scratch.z.begin());
  const KeptRange range = kept_range(params, row.size(), scratch);
  TokenId best = -1;
  float best_score = -kInf;
  for (TokenId token = 0; token < static_cast<TokenId>(row.size()); ++token) {
    if (z[token] < range.lowest || z[token] > range.highest) continue;
    const float score = z[token] + gumbel(params.seed, token, position, params.choice_index, Domain::kTarget);
    if (score > best_score) best = token, best_score = score;
  }
  return best;
}

std::vector<Params> many_params() {
  return {make(1.0f),
          make(0.7f),
          make(3.0f),
          make(1.0f, 5),
          make(0.8f, 40, 0.9f),
          make(1.0f, 0, 0.9f),
          make(1.3f, 0, 0.5f),
          make(1.0f, 0, 1.0f, 0.1f),
          make(0.6f, 20, 0.95f, 0.05f),
          make(1.0f, 0, 1.0f, 0.0f, 1, 0.5f),
          make(0.8f, 30, 0.95f, 0.01f, 1, 0.7f)};
}

// ---- greedy

TEST(Greedy, TiesGoToTheLowestId) {
  EXPECT_EQ(drawn({1, 7, 3, 7, 7}, make(0.0f), 0), 1);
  EXPECT_EQ(drawn({-0.0f, 0.0f, -1.0f}, make(0.0f), 0), 0);
  EXPECT_EQ(drawn(std::vector<float>(100, -5.0f), make(0.0f), 0), 0);
}

TEST(Greedy, FindsTheHighestWhereverItIs) {
  for (const std::size_t vocab : {1, 2, 15, 16, 17, 31, 32, 33, 100}) {
    for (std::size_t at = 0; at < vocab; ++at) {
      std::vector<float> row = bell_row(vocab, 1.0f, 3);
      row[at] = 10.0f;
      ASSERT_EQ(drawn(row, make(0.0f), 0), static_cast<TokenId>(at)) << vocab;
    }
  }
}

TEST(Greedy, ReignsBelowTheTemperatureLimitAndNotAtIt) {
  const std::vector<float> row = {0.0f, 1e-5f};  // one nat apart at temperature 1e-5
  int low = 0;
  for (std::uint32_t position = 0; position < 1000; ++position) {
    EXPECT_EQ(drawn(row, make(std::nextafter(kGreedyTemperature, 0.0f)), position), 1);
    low += drawn(row, make(kGreedyTemperature), position) == 0 ? 1 : 0;
    low += drawn(row, make(std::nextafter(kGreedyTemperature, 1.0f)), position) == 0 ? 1 : 0;
  }
  EXPECT_NEAR(low / 2000.0, 1 / (1 + std::exp(1.0)), 0.05);
}

TEST(Greedy, SurvivesTheSharpestTemperatureOnTheLargestLogits) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(drawn({-most, most, 0.0f}, make(kGreedyTemperature, 2, 0.5f, 0.1f), 0), 1);
  EXPECT_EQ(drawn({1e30f, -1e30f, 2e30f}, make(kGreedyTemperature), 0), 2);
}

// ---- what is not finite

void expect_not_finite(const std::vector<float>& row) {
  Scratch scratch(row.size());
  for (const float temperature : {0.0f, 1.0f, 0.5f}) {
    const SampledToken result = draw(row, make(temperature), 0, scratch);
    EXPECT_FALSE(result.finite);
    EXPECT_EQ(result.token, -1);
  }
}

TEST(Draw, SaysWhereALogitIsNanOrPlusInfinity) {
  for (const std::size_t vocab : {1, 5, 16, 19, 40}) {
    for (std::size_t at = 0; at < vocab; ++at) {
      for (const float bad : {kNan, -kNan, kInf}) {
        std::vector<float> row = bell_row(vocab, 2.0f, 1);
        row[at] = bad;
        expect_not_finite(row);
      }
    }
  }
}

TEST(Draw, OfARowWhoseHighestWasFoundInPiecesIsTheSame) {
  Scratch scratch(40);
  for (const std::size_t piece : {1, 3, 16, 39, 40}) {
    for (std::uint32_t variant = 0; variant < 12; ++variant) {
      std::vector<float> row = bell_row(40, 2.0f, variant + 1);
      if (variant % 4 == 1) row[variant * 3] = row[39] = 9.0f;  // a tie, in two pieces
      if (variant % 4 == 2) row[variant * 3] = variant == 2 ? kNan : variant == 6 ? -kNan : kInf;
      if (variant == 11) std::fill(row.begin(), row.end(), -kInf);
      Highest highest;
      for (std::size_t first = 0; first < row.size(); first += piece) {
        const std::size_t count = std::min(piece, row.size() - first);
        highest = join(highest, {highest_of(std::span(row).subspan(first, count)).logit, first});
      }
      for (const float temperature : {0.0f, 0.8f}) {
        const SampledToken whole = draw(row, make(temperature), 7, scratch);
        const SampledToken pieces = draw(row, highest, make(temperature), 7, scratch);
        EXPECT_EQ(pieces.token, whole.token) << "pieces of " << piece << ", variant " << variant;
        EXPECT_EQ(pieces.finite, whole.finite) << "pieces of " << piece << ", variant " << variant;
      }
    }
  }
}

TEST(Draw, SaysWhereEverythingIsMasked) {
  for (const std::size_t vocab : {1, 16, 21}) expect_not_finite(std::vector<float>(vocab, -kInf));
}

TEST(Draw, NeverDrawsAMaskedToken) {
  std::vector<float> row(37, -kInf);
  row[5] = -3.0e38f;
  row[36] = -3.0e38f;
  std::map<TokenId, int> counts;
  for (const Params& params : many_params()) {
    for (std::uint32_t position = 0; position < 50; ++position) ++counts[drawn(row, params, position)];
  }
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_GT(counts[5], 0);
  EXPECT_GT(counts[36], 0);
}

// ---- a function of (logits, params, position) alone

TEST(Draw, SkippingChangesNothing) {
  for (const std::size_t vocab : {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 257, 1001}) {
    for (const float scale : {0.0f, 1.0f, 5.0f, 40.0f}) {
      const std::vector<float> row = bell_row(vocab, scale, static_cast<std::uint32_t>(vocab));
      for (const Params& params : many_params()) {
        for (std::uint32_t position = 0; position < 40; ++position) {
          ASSERT_EQ(drawn(row, params, position), drawn_plainly(row, params, position))
              << "V " << vocab << " scale " << scale << " position " << position;
        }
      }
    }
  }
}

TEST(Draw, TiesOfTheNoisyScoresGoToTheLowestId) {
  const Params params = make(1.0f);
  int num_ties = 0;
  for (std::uint32_t position = 0; position < 200; ++position) {
    const float noise0 = gumbel(params.seed, 0, position, 0, Domain::kTarget);
    const float noise1 = gumbel(params.seed, 1, position, 0, Domain::kTarget);
    const float z0 = noise1 - noise0;  // lowers token 0 to exactly where token 1 stands
    if (!(z0 < 0.0f) || z0 + noise0 != noise1) continue;
    ++num_ties;
    EXPECT_EQ(drawn({z0, 0.0f}, params, position), 0) << position;
  }
  EXPECT_GT(num_ties, 20);
}

TEST(Draw, DependsOnNothingThatScratchHeld) {
  constexpr std::size_t kVocab = 203;
  const std::vector<float> row = bell_row(kVocab, 4.0f, 8);
  Scratch dirty(kVocab + 100);
  for (const Params& params : many_params()) {
    for (std::uint32_t position = 0; position < 20; ++position) {
      std::fill(dirty.z.begin(), dirty.z.end(), position % 2 == 0 ? kNan : 99.0f);
      std::fill(dirty.kept.begin(), dirty.kept.end(), kNan);
      std::fill(dirty.weights.begin(), dirty.weights.end(), kInf);
      std::fill(dirty.bins.begin(), dirty.bins.end(), 1u << 30);
      const TokenId first = draw(row, params, position, dirty).token;
      ASSERT_EQ(first, draw(row, params, position, dirty).token);
      ASSERT_EQ(first, drawn(row, params, position));
    }
  }
}

TEST(Draw, ReadsOnlyTheVocabularyAndFromAnyAddress) {
  constexpr std::size_t kVocab = 77;
  const std::vector<float> row = bell_row(kVocab, 3.0f, 2);
  for (std::size_t shift = 0; shift < 5; ++shift) {
    std::vector<float> padded(kVocab + shift + 16, kNan);
    std::copy(row.begin(), row.end(), padded.begin() + static_cast<std::ptrdiff_t>(shift));
    Scratch scratch(kVocab);
    for (const Params& params : many_params()) {
      const SampledToken result = draw(std::span(padded).subspan(shift, kVocab), params, 6, scratch);
      ASSERT_TRUE(result.finite);
      ASSERT_EQ(result.token, drawn(row, params, 6));
    }
  }
}

TEST(Draw, DependsOnNoDrawBeforeIt) {
  const std::vector<float> row = bell_row(64, 2.0f, 4);
  Scratch scratch(row.size());
  std::vector<TokenId> forward, backward;
  for (std::uint32_t p = 0; p < 100; ++p) forward.push_back(draw(row, make(1.0f, 0, 0.9f), p, scratch).token);
  for (std::uint32_t p = 100; p-- > 0;) backward.push_back(draw(row, make(1.0f, 0, 0.9f), p, scratch).token);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
}

TEST(Draw, AddingAConstantToEveryLogitChangesNothing) {
  std::vector<float> row = grid_row(100, 5.0f, 0.125f, 3);  // on a grid, so that the sums are exact
  std::vector<float> moved = row;
  for (float& x : moved) x += 1024.0f;
  for (const Params& params : many_params()) {
    for (std::uint32_t p = 0; p < 50; ++p) ASSERT_EQ(drawn(row, params, p), drawn(moved, params, p));
  }
}

// The same tokens on every machine and compiler: part of what the server promises.
TEST(Draw, TokensNeverChange) {
  const std::vector<float> row = grid_row(1000, 6.0f, 0.0625f, 12);
  std::vector<TokenId> tokens;
  for (const Params& params : many_params()) {
    for (const std::uint32_t position : {0u, 1u, 0xffffffffu}) tokens.push_back(drawn(row, params, position));
  }
  EXPECT_EQ(tokens,
            (std::vector<TokenId>{34, 591, 20,  34,  591, 831, 34,  591, 818, 885, 885, 831, 885, 591, 831, 885, 591,
                                  20, 885, 591, 831, 885, 591, 831, 885, 591, 831, 614, 591, 594, 885, 591, 831}));
}

TEST(DrawDeathTest, NeedsScratchForTheWholeRow) {
  Scratch scratch(17);
  EXPECT_TRUE(draw(std::vector<float>(16, 1.0f), make(1.0f), 0, scratch).finite);
  EXPECT_TRUE(draw(std::vector<float>(17, 1.0f), make(1.0f), 0, scratch).finite);
  EXPECT_DEATH(draw(std::vector<float>(18, 1.0f), make(1.0f), 0, scratch), "logits.size");
  EXPECT_DEATH(draw({}, make(1.0f), 0, scratch), "logits.size");
}

// ---- the law

std::vector<int> histogram(const std::vector<float>& row, const Params& params, std::uint32_t num_draws) {
  std::vector<int> counts(row.size(), 0);
  Scratch scratch(row.size());
  for (std::uint32_t position = 0; position < num_draws; ++position) {
    ++counts[draw(row, params, position, scratch).token];
  }
  return counts;
}

// Chi-square over bins of at least five expected draws (the rest pooled). Below mean + 5 sigma of its own law.
void expect_chi_square(const std::vector<int>& counts, const std::vector<double>& distribution) {
  const double num_draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double chi = 0.0, pooled_expected = 0.0, pooled = 0.0;
  int bins = 0;
  const auto add = [&](double got, double expected) {
    chi += (got - expected) * (got - expected) / expected;
    ++bins;
  };
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    if (distribution[i] * num_draws >= 5.0) {
      add(counts[i], distribution[i] * num_draws);
    } else {
      pooled += counts[i];
      pooled_expected += distribution[i] * num_draws;
    }
  }
  if (pooled_expected >= 5.0) add(pooled, pooled_expected);
  const double freedom = bins - 1;
  EXPECT_LE(chi, freedom + 5.0 * std::sqrt(2.0 * freedom)) << bins << " bins";
}

// Total variation: its mean is at most sum sqrt(p / n) / 2, and it passes that by t with probability exp(-2 n t^2)
// (McDiarmid 1989); t is where that is 1e-4.
void expect_total_variation(const std::vector<int>& counts, const std::vector<double>& distribution) {
  const double num_draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double distance = 0.0, mean = 0.0;
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    distance += std::fabs(counts[i] / num_draws - distribution[i]) / 2;
    mean += std::sqrt(distribution[i] / num_draws) / 2;
  }
  EXPECT_LE(distance, mean + std::sqrt(std::log(1e4) / (2.0 * num_draws)));
}

void expect_distribution(const std::vector<float>& row, const Params& params, std::uint32_t num_draws) {
  const std::vector<int> counts = histogram(row, params, quire::testing::cases(num_draws));
  const std::vector<double> distribution = reference_distribution(row, params);
  expect_chi_square(counts, distribution);
  expect_total_variation(counts, distribution);
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    ASSERT_TRUE(distribution[i] > 0.0 || counts[i] == 0) << "a filtered token was drawn: " << i;
  }
}

class Distribution : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Params, Distribution, ::testing::Range(std::size_t{0}, many_params().size()));

TEST_P(Distribution, OfTheDrawsIsTheReference) {
  const Params params = many_params()[GetParam()];
  expect_distribution(bell_row(61, 6.0f, 1), params, 200'000);
  expect_distribution(grid_row(130, 3.0f, 0.5f, 2), params, 40'000);
  expect_distribution(bell_row(7, 0.5f, 3), params, 40'000);
}

// Pairs of draws on a row of four tokens: the joint law must be the product, whatever differs between the two streams.
void expect_independent(const Params& one, const Params& other, std::uint32_t position_step, const char* what) {
  const std::vector<float> row = {0.3f, -0.4f, 0.0f, 0.9f};
  const std::vector<double> distribution = reference_distribution(row, one);
  std::vector<int> pairs(16, 0);
  Scratch scratch(row.size());
  for (std::uint32_t p = 0; p < 200'000; ++p) {
    const TokenId first = draw(row, one, p, scratch).token;
    ++pairs[first * 4 + draw(row, other, p + position_step, scratch).token];
  }
  std::vector<double> joint(16);
  for (std::size_t i = 0; i < 16; ++i) joint[i] = distribution[i / 4] * distribution[i % 4];
  SCOPED_TRACE(what);
  expect_chi_square(pairs, joint);
}

TEST(Draw, SeedsPositionsAndChoicesAreIndependentStreams) {
  const Params base = make(1.0f);
  Params seed = base, high_seed = base, choice = base;
  seed.seed += 1;
  high_seed.seed += std::uint64_t{1} << 32;
  choice.choice_index = 1;
  expect_independent(base, base, 1, "next position");
  expect_independent(base, base, 4, "four positions on");
  expect_independent(base, seed, 0, "next seed");
  expect_independent(base, high_seed, 0, "seed differing in its high half");
  expect_independent(base, choice, 0, "next choice");
}

}  // namespace
}  // namespace quire::sample::sampler_test
