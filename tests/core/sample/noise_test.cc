#include "core/sample/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace quire::sample::noise_test {
namespace {

// The words worth a look: the ends, both sides of the branch, every power of two and its complement, and a spread.
std::vector<std::uint32_t> words() {
  std::vector<std::uint32_t> all = {0, 1, 2, 0xbffffffe, 0xbfffffff, 0xc0000000, 0xc0000001, 0xfffffffe, 0xffffffff};
  for (int bit = 0; bit < 32; ++bit) {
    for (const std::uint32_t near : {(1u << bit) - 1u, 1u << bit, (1u << bit) + 1u}) {
      all.push_back(near);
      all.push_back(~near);
    }
  }
  for (std::uint64_t word = 0; word < (std::uint64_t{1} << 32); word += 10007) {
    all.push_back(static_cast<std::uint32_t>(word));
  }
  return all;
}

TEST(Noise, IsFiniteAndInsideItsPublishedRangeForEveryWord) {
  for (const std::uint32_t word : words()) {
    const float noise = gumbel_of_word(word);
    ASSERT_TRUE(noise >= kGumbelLowest && noise <= kGumbelHighest) << word << ": " << noise;
  }
  EXPECT_FLOAT_EQ(gumbel_of_word(0xffffffff), static_cast<float>(33 * std::log(2.0)));
  EXPECT_FLOAT_EQ(gumbel_of_word(0), static_cast<float>(-std::log(33 * std::log(2.0))));
}

TEST(Noise, IsMinusLogMinusLogOfU) {
  for (const std::uint32_t word : words()) {
    const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;
    const double exponential =
        word >= 0xc0000000u ? -std::log1p(-(static_cast<double>(~word) + 0.5) * 0x1p-32) : -std::log(u);
    // E carries a few f32 roundings, each relative: the noise moves by as much, plus its own ulp.
    ASSERT_NEAR(static_cast<double>(gumbel_of_word(word)), -std::log(exponential), 4 * 0x1p-23 + 23 * 0x1p-24) << word;
  }
}

// Part of every numeric mode, as exp and log are.
TEST(Noise, BitsNeverChange) {
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a over words
  for (const std::uint32_t word : words()) {
    digest = (digest ^ std::bit_cast<std::uint32_t>(gumbel_of_word(word))) * 0x100000001b3u;
  }
  EXPECT_EQ(digest, 0xea8baa012f0ec600u);
}

TEST(Noise, NeverPassesItsBound) {
  for (const std::uint32_t word : words()) ASSERT_LT(gumbel_of_word(word), gumbel_bound(word)) << word;
}

TEST(Noise, NeverFallsAsTheWordRisesAtTheEndThatWins) {
  for (std::uint32_t word = 0xffff0000u; word < 0xffffffffu; ++word) {
    ASSERT_LE(gumbel_of_word(word), gumbel_of_word(word + 1)) << word;
  }
}

TEST(Noise, TakesTheWordOfItsTokenFromTheBlockOfFour) {
  const std::uint64_t seed = 0x0123456789abcdefu;
  for (TokenId token = 0; token < 9; ++token) {
    const auto id = static_cast<std::uint32_t>(token);
    const PhiloxCounter words = philox4x32({{id / 4, 77, 5, 2}}, {{0x89abcdefu, 0x01234567u}});
    EXPECT_EQ(gumbel(seed, token, 77, 5, Domain::kCoin), gumbel_of_word(words.words[id % 4]));
  }
}

TEST(Noise, DiffersWithSeedTokenPositionChoiceAndDomain) {
  std::set<float> seen;
  seen.insert(gumbel(1, 0, 0, 0, Domain::kTarget));
  seen.insert(gumbel(2, 0, 0, 0, Domain::kTarget));
  seen.insert(gumbel(1 + (std::uint64_t{1} << 32), 0, 0, 0, Domain::kTarget));
  seen.insert(gumbel(1, 1, 0, 0, Domain::kTarget));
  seen.insert(gumbel(1, 4, 0, 0, Domain::kTarget));
  seen.insert(gumbel(1, 0, 1, 0, Domain::kTarget));
  seen.insert(gumbel(1, 0, 0, 1, Domain::kTarget));
  seen.insert(gumbel(1, 0, 0, 0, Domain::kProposal));
  seen.insert(gumbel(1, 0, 0, 0, Domain::kCoin));
  seen.insert(gumbel(1, 0, 0, 0, Domain::kResidual));
  EXPECT_EQ(seen.size(), 10u);
}

TEST(Noise, HasTheGumbelDistribution) {
  constexpr int kCount = 400'000;
  std::vector<double> sample(kCount);
  for (int i = 0; i < kCount; ++i) sample[i] = static_cast<double>(gumbel(42, i, 3, 0, Domain::kTarget));
  std::sort(sample.begin(), sample.end());
  double distance = 0.0;  // Kolmogorov-Smirnov
  for (int i = 0; i < kCount; ++i) {
    const double distribution = std::exp(-std::exp(-sample[i]));
    distance = std::max(
        {distance, std::fabs(distribution - double(i) / kCount), std::fabs(distribution - double(i + 1) / kCount)});
  }
  EXPECT_LT(distance * std::sqrt(double(kCount)), 1.95);  // 1.95: probability 0.001; the seed is fixed
}

struct Neighbour {
  const char* name;
  std::uint64_t seed;
  std::uint32_t position;
  std::uint32_t choice;
  Domain domain;
};

TEST(Noise, NeighbouringStreamsAreUncorrelated) {
  constexpr int kCount = 200'000;
  const double mean = 0.5772156649, variance = 1.6449340668;  // Euler's constant, pi^2 / 6
  for (const Neighbour& other :
       {Neighbour{"seed", 8, 0, 0, Domain::kTarget}, Neighbour{"position", 7, 1, 0, Domain::kTarget},
        Neighbour{"choice", 7, 0, 1, Domain::kTarget}, Neighbour{"domain", 7, 0, 0, Domain::kProposal},
        Neighbour{"depth", 7, 0, 0, ahead(Domain::kTarget, 1)}}) {
    double sum = 0.0;
    for (TokenId token = 0; token < kCount; ++token) {
      sum += (static_cast<double>(gumbel(7, token, 0, 0, Domain::kTarget)) - mean) *
             (static_cast<double>(gumbel(other.seed, token, other.position, other.choice, other.domain)) - mean);
    }
    EXPECT_LT(std::fabs(sum / kCount / variance), 4.0 / std::sqrt(double(kCount))) << other.name;
  }
}

TEST(Noise, EveryDepthOfEveryDomainIsAStreamOfItsOwn) {
  std::set<std::uint32_t> streams;
  for (std::uint32_t depth = 0; depth <= 65; ++depth) {
    for (const Domain domain : {Domain::kTarget, Domain::kProposal, Domain::kCoin, Domain::kResidual}) {
      EXPECT_TRUE(streams.insert(static_cast<std::uint32_t>(ahead(domain, depth))).second);
    }
  }
  EXPECT_EQ(ahead(Domain::kCoin, 0), Domain::kCoin);
}

TEST(Noise, CoinsAreUniformBetweenZeroAndOne) {
  constexpr int kCount = 100'000;
  std::vector<int> tenths(10);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const double u = coin(7, i, 3, 0, Domain::kCoin);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++tenths[static_cast<std::size_t>(u * 10.0)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, kCount / 10, 480);  // 5 sigma
}

}  // namespace
}  // namespace quire::sample::noise_test
