#include "core/sample/logprob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/sample/reference.h"
#include "core/sample/sampler.h"
#include "tests/core/sample/rows.h"

namespace quire::sample::logprob_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kMost = std::numeric_limits<float>::max();

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

double log_sum_of(const std::vector<float>& row) {
  Scratch scratch(row.size());
  return log_sum_of(row, *std::max_element(row.begin(), row.end()), scratch);
}

std::vector<float> logprobs_of(const std::vector<float>& row) {
  const float highest = *std::max_element(row.begin(), row.end());
  const double log_sum = log_sum_of(row);
  std::vector<float> logprobs;
  for (const float logit : row) logprobs.push_back(logprob_of(logit, highest, log_sum));
  return logprobs;
}

double half_ulp(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 25);
}

// The card's bound without the half ulp: (3 + m) 2^-24 + V 2^-44, m = sum p|z|.
double bound_of(const std::vector<float>& row, const std::vector<double>& logprobs) {
  const double highest = *std::max_element(row.begin(), row.end());
  double m = 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (logprobs[i] > -1000.0) m += std::exp(logprobs[i]) * (highest - static_cast<double>(row[i]));
  }
  return (3.0 + m) * 0x1p-24 + static_cast<double>(row.size()) * 0x1p-44;
}

std::vector<std::vector<float>> many_rows() {
  std::vector<std::vector<float>> rows = {{5.0f}, {1.0f, 1.0f}, {0.0f, -30.0f}, {-1e30f, 3.0f, -1e30f}};
  for (const std::size_t vocab : {2, 3, 15, 16, 17, 100, 1000, 49152, 131072}) {
    for (const float scale : {0.01f, 1.0f, 6.0f, 40.0f, 1e5f}) {
      rows.push_back(bell_row(vocab, scale, static_cast<std::uint32_t>(vocab)));
    }
  }
  for (float& x : rows.back()) x += 1e6f;  // far from 0: the differences are what counts
  return rows;
}

// ---- one log probability

TEST(Logprob, IsLogSoftmaxWithinTheBoundOfItsCard) {
  double worst = 0.0;
  for (const std::vector<float>& row : many_rows()) {
    const std::vector<double> want = reference_logprobs(row);
    const std::vector<float> got = logprobs_of(row);
    const double bound = bound_of(row, want);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double error = std::fabs(static_cast<double>(got[i]) - want[i]) - half_ulp(want[i]);
      ASSERT_LE(error, bound) << "V " << row.size() << " token " << i << " logprob " << want[i];
      worst = std::max(worst, error / bound);
    }
  }
  EXPECT_GT(worst, 0.02);  // else the bound says little
}

TEST(Logprob, OfAllTokensIsADistribution) {
  for (const std::vector<float>& row : many_rows()) {
    double sum = 0.0, rounded = 0.0;  // what rounding each logprob to f32 may move
    for (const float logprob : logprobs_of(row)) {
      const double p = std::exp(static_cast<double>(logprob));
      sum += p;
      rounded += p > 0.0 ? p * half_ulp(logprob) : 0.0;
    }
    EXPECT_NEAR(sum, 1.0, bound_of(row, reference_logprobs(row)) + rounded) << "V " << row.size();
  }
}

// One token and its only rival, d below: log p = -log(1 + exp(-d)), tiny. Half an ulp of it, 1.8 from exp, 1 from the
// logarithm, d is exact; the rival's mass is rounded to 2^-44.
TEST(Logprob, OfANearlyCertainTokenIsAccurateRelativeToItself) {
  for (float d = 1.0f; d < 28.0f; d += 0.25f) {
    const double want = -std::log1p(std::exp(-static_cast<double>(d)));
    EXPECT_NEAR(logprobs_of({-d, 0.0f})[1], want, half_ulp(want) - 3.0 * 0x1p-24 * want + 0x1p-44) << d;
  }
}

TEST(Logprob, OfTheOnlyPossibleTokenIsZero) {
  EXPECT_THAT(logprobs_of({7.5f}), ElementsAre(0.0f));
  EXPECT_EQ(bits_of(logprobs_of({7.5f})[0]), 0u);  // not -0
  EXPECT_THAT(logprobs_of({-kInf, -2.0f, -kInf}), ElementsAre(-kInf, 0.0f, -kInf));
  EXPECT_THAT(logprobs_of({0.0f, -31.0f}), ElementsAre(0.0f, -31.0f));  // a mass below half a unit
}

TEST(Logprob, MaskedTokensAreImpossibleAndChangeNoOther) {
  const std::vector<float> row = bell_row(100, 5.0f, 6);
  std::vector<float> masked = row;
  for (std::size_t i = 0; i <= 100; i += 10) masked.insert(masked.begin() + static_cast<std::ptrdiff_t>(i), -kInf);
  std::vector<float> possible = logprobs_of(masked);
  EXPECT_EQ(std::erase(possible, -kInf), 11u);
  EXPECT_EQ(possible, logprobs_of(row));
}

TEST(Logprob, SurvivesTheLargestLogits) {
  EXPECT_THAT(logprobs_of({-kMost, kMost, 0.0f}), ElementsAre(-kInf, 0.0f, -kMost));
  EXPECT_THAT(logprobs_of({-kMost, -kMost, -kInf}), ElementsAre(std::log(0.5f), std::log(0.5f), -kInf));
}

TEST(Logprob, SumsTheLargestVocabularyOfEqualTokens) {
  EXPECT_EQ(log_sum_of(std::vector<float>(kMaxVocab, 3.0f)), 20 * kLn2);  // 2^63 units
  EXPECT_EQ(log_sum_of(std::vector<float>(kMaxVocab / 2, 3.0f)), 19 * kLn2);
}

TEST(Logprob, DoesNotDependOnTheOrderOfTokens) {
  std::vector<float> row = bell_row(5000, 6.0f, 9);
  const double log_sum = log_sum_of(row);
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    std::shuffle(row.begin(), row.end(), random);
    ASSERT_EQ(bits_of(log_sum_of(row)), bits_of(log_sum));
  }
}

TEST(Logprob, NeverFallsWhereLogitsRise) {
  std::vector<float> row = bell_row(20000, 3.0f, 2);
  std::sort(row.begin(), row.end());
  const std::vector<float> logprobs = logprobs_of(row);
  EXPECT_TRUE(std::is_sorted(logprobs.begin(), logprobs.end()));
  EXPECT_LT(logprobs.back(), 0.0f);
}

TEST(LogOfMass, IsWithinItsShareOfTheBound) {
  const auto check = [](std::uint64_t mass) {
    const double want = std::log(std::ldexp(static_cast<double>(mass), -kLogMassBits));
    ASSERT_LE(std::fabs(log_of_mass(mass) - want), 0x1p-24) << mass;
  };
  std::mt19937_64 random(5);
  for (int exponent = 43; exponent < 63; ++exponent) {
    const std::uint64_t low = std::uint64_t{1} << exponent;
    for (const std::uint64_t above : {std::uint64_t{0}, std::uint64_t{1}, low / 3 - 1, low / 3, low / 3 + 1, low - 1}) {
      check(low + above);  // both sides of where the power of two changes
    }
    for (int i = 0; i < 5000; ++i) check(low + random() % low);
  }
  check(std::uint64_t{1} << 63);
}

// What the server says of a row is the same on every machine.
TEST(Logprob, BitsNeverChange) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (const float scale : {0.5f, 3.0f, 12.0f}) {
    for (const float logprob : logprobs_of(bell_row(3000, scale, 77))) {
      digest = (digest ^ bits_of(logprob)) * 0x100000001b3u;
    }
  }
  EXPECT_EQ(digest, 0x9976a714bcce7276u);
}

// ---- the list

struct Listed {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  bool operator==(const Listed&) const = default;
};

Listed listed(std::span<const Candidate> candidates) {
  Listed list;
  for (const Candidate& candidate : candidates) {
    list.tokens.push_back(candidate.token);
    list.logprobs.push_back(candidate.logprob);
  }
  return list;
}

Listed list_of(const std::vector<float>& row, std::size_t num_top) {
  std::vector<Candidate> room(num_top);
  return listed(list_likeliest(row, *std::max_element(row.begin(), row.end()), log_sum_of(row), room));
}

// The card, word for word: sort everything, cut.
Listed list_plainly(const std::vector<float>& row, std::size_t num_top) {
  const std::vector<float> logprobs = logprobs_of(row);
  Listed list;
  list.tokens.resize(row.size());
  std::iota(list.tokens.begin(), list.tokens.end(), 0);
  std::stable_sort(list.tokens.begin(), list.tokens.end(), [&](TokenId a, TokenId b) { return row[a] > row[b]; });
  list.tokens.resize(std::min(num_top, row.size()));
  for (const TokenId token : list.tokens) list.logprobs.push_back(logprobs[token]);
  return list;
}

TEST(Likeliest, AreThoseOfASortedRow) {
  for (const std::size_t vocab : {1, 2, 3, 16, 17, 33, 255, 256, 257, 1000}) {
    std::vector<std::vector<float>> rows = {bell_row(vocab, 4.0f, 1), grid_row(vocab, 4.0f, 1.0f, 2),
                                            std::vector<float>(vocab, -2.0f)};
    rows.push_back(rows[0]);
    std::sort(rows.back().begin(), rows.back().end());
    rows.push_back(rows.back());
    std::reverse(rows.back().begin(), rows.back().end());
    rows.push_back(rows[1]);
    for (std::size_t i = 0; i < vocab; ++i) {
      if (i % 3 != 1) rows.back()[i] = -kInf;
    }
    rows.back()[vocab / 2] = 1.5f;  // not everything is masked
    for (const std::vector<float>& row : rows) {
      for (const std::size_t num_top : {0, 1, 2, 5, 16, 20, 255, 256}) {
        ASSERT_EQ(list_of(row, num_top), list_plainly(row, num_top)) << "V " << vocab << " num_top " << num_top;
      }
    }
  }
}

TEST(Likeliest, TiesGoToTheLowestIdAndMaskedOnesComeLast) {
  const Listed list = list_of({-kInf, 2.0f, -0.0f, 2.0f, -kInf, 0.0f}, 5);
  EXPECT_THAT(list.tokens, ElementsAre(1, 3, 2, 5, 0));
  EXPECT_EQ(list.logprobs.back(), -kInf);
  EXPECT_GT(list.logprobs[3], -kInf);
}

TEST(Likeliest, AreFewerWhereTheVocabularyIs) {
  for (const std::size_t vocab : {19, 20, 21}) {
    EXPECT_EQ(list_of(bell_row(vocab, 1.0f, 1), 20).tokens.size(), std::min<std::size_t>(vocab, 20));
  }
}

// ---- draw()

std::vector<Params> many_params() {
  std::vector<Params> many(4);
  many[0].temperature = 0.0f;
  many[1].temperature = 0.7f;
  many[2].top_p = 0.8f;
  many[2].top_k = 40;
  many[3].min_p = 0.1f;
  many[3].temperature = 2.0f;
  return many;
}

TEST(Draw, ScoresGreedyAndDrawnTokensAlikeAndDrawsTheSame) {
  const std::vector<float> row = bell_row(301, 4.0f, 3);
  const std::vector<float> logprobs = logprobs_of(row);
  Scratch scratch(row.size());
  std::vector<Candidate> room(kMaxTop);
  for (Params params : many_params()) {
    for (std::uint32_t position = 0; position < 50; ++position) {
      params.logprob = false;
      params.num_top = 0;
      const TokenId token = draw(row, params, position, scratch).token;
      params.logprob = true;
      for (const std::uint32_t num_top : {0u, 1u, 5u, kMaxTop}) {
        params.num_top = num_top;
        const SampledToken drawn = draw(row, params, position, scratch, room);
        ASSERT_EQ(drawn.token, token);
        ASSERT_EQ(drawn.logprob, logprobs[token]);
        ASSERT_EQ(listed(drawn.top), list_plainly(row, num_top));
      }
    }
  }
}

TEST(Draw, ListsTheLikeliestWhetherOrNotTheTokenIsAmongThem) {
  Params params;
  params.num_top = 1;
  std::vector<Candidate> room(1);
  Scratch scratch(4);
  int among = 0;
  for (std::uint32_t position = 0; position < 100; ++position) {
    const SampledToken drawn = draw(std::vector<float>{0.0f, 0.1f, 0.0f, 0.0f}, params, position, scratch, room);
    ASSERT_THAT(listed(drawn.top).tokens, ElementsAre(1));
    among += drawn.token == 1 ? 1 : 0;
  }
  EXPECT_GT(among, 0);
  EXPECT_LT(among, 100);
}

TEST(Draw, SaysOnlyWhatIsAskedFor) {
  const std::vector<float> row = bell_row(50, 4.0f, 3);
  Scratch scratch(row.size());
  std::vector<Candidate> room(3, {-7, 7.0f});
  for (Params params : many_params()) {
    EXPECT_EQ(draw(row, params, 1, scratch, room).logprob, 0.0f);
    EXPECT_THAT(draw(row, params, 1, scratch, room).top, IsEmpty());
    params.logprob = true;
    EXPECT_LT(draw(row, params, 1, scratch, room).logprob, 0.0f);
    EXPECT_THAT(draw(row, params, 1, scratch, room).top, IsEmpty());
    EXPECT_THAT(listed(room).tokens, Each(-7));
  }
  Params params;
  params.num_top = 2;
  EXPECT_EQ(draw(row, params, 1, scratch, room).logprob, 0.0f);
  EXPECT_EQ(draw(row, params, 1, scratch, room).top.size(), 2u);
  EXPECT_EQ(room[2].token, -7);
}

TEST(Draw, SaysNothingOfARowThatIsNotFinite) {
  Params params;
  params.logprob = true;
  params.num_top = 2;
  std::vector<Candidate> room(2, {-7, 7.0f});
  for (const float temperature : {0.0f, 1.0f}) {
    params.temperature = temperature;
    for (const std::vector<float>& row :
         {std::vector<float>{1, kNan, 2}, {1, 2, kInf}, {-kInf, -kInf, -kInf}, {kNan, -kInf, -kInf}}) {
      Scratch scratch(row.size());
      const SampledToken drawn = draw(row, params, 0, scratch, room);
      EXPECT_FALSE(drawn.finite);
      EXPECT_EQ(drawn.logprob, 0.0f);
      EXPECT_THAT(drawn.top, IsEmpty());
      EXPECT_THAT(listed(room).tokens, Each(-7));
    }
  }
}

TEST(Draw, SaysNothingThatScratchOrRoomHeld) {
  const std::vector<float> row = bell_row(203, 4.0f, 8);
  Scratch dirty(row.size() + 100);
  std::vector<Candidate> room(20, {5, kInf});
  for (Params params : many_params()) {
    params.logprob = true;
    params.num_top = 20;
    std::fill(dirty.z.begin(), dirty.z.end(), kNan);
    std::fill(dirty.kept.begin(), dirty.kept.end(), kNan);
    std::fill(dirty.weights.begin(), dirty.weights.end(), kInf);
    const SampledToken drawn = draw(row, params, 3, dirty, room);
    EXPECT_EQ(drawn.logprob, logprobs_of(row)[drawn.token]);
    EXPECT_EQ(listed(drawn.top), list_plainly(row, 20));
  }
}

TEST(DrawDeathTest, NeedsRoomForTheListAndNoListIsLongerThanTheLongest) {
  const std::vector<float> row = bell_row(1000, 4.0f, 8);
  Scratch scratch(row.size());
  std::vector<Candidate> room(kMaxTop + 1);
  Params params;
  params.num_top = kMaxTop - 1;
  EXPECT_EQ(draw(row, params, 0, scratch, room).top.size(), kMaxTop - 1);
  EXPECT_EQ(draw(row, params, 0, scratch, std::span(room).first(kMaxTop - 1)).top.size(), kMaxTop - 1);
  EXPECT_DEATH(draw(row, params, 0, scratch, std::span(room).first(kMaxTop - 2)), "room");
  params.num_top = kMaxTop;
  EXPECT_EQ(draw(row, params, 0, scratch, room).top.size(), kMaxTop);
  params.num_top = kMaxTop + 1;
  EXPECT_DEATH(draw(row, params, 0, scratch, room), "kMaxTop");
}

}  // namespace
}  // namespace quire::sample::logprob_test
