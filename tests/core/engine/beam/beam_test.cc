// The beam against brute force, on table models small enough to look at every continuation.
#include "core/engine/beam/beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace quire::engine::beam_test {
namespace {

constexpr std::uint32_t kVocab = 4;
constexpr TokenId kStop = 3;

using Table = std::function<float(const std::vector<TokenId>&, TokenId)>;  // log probability of a token behind others

// A pure function of seed, prefix and token. Few distinct values, so that there are ties.
Table table(std::uint32_t seed, int num_values) {
  return [=](const std::vector<TokenId>& prefix, TokenId token) {
    std::uint64_t hash = seed;
    for (const TokenId one : prefix) hash = (hash ^ static_cast<std::uint64_t>(one + 1)) * 0x9e3779b97f4a7c15u + 7;
    hash = (hash ^ static_cast<std::uint64_t>(token + 11)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    return -0.25f * static_cast<float>(1 + hash % static_cast<std::uint64_t>(num_values));
  };
}

std::vector<sample::Candidate> likeliest(const Table& model, const std::vector<TokenId>& prefix, std::uint32_t count) {
  std::vector<sample::Candidate> all;
  for (TokenId token = 0; token < static_cast<TokenId>(kVocab); ++token) all.push_back({token, model(prefix, token)});
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
  all.resize(std::min<std::size_t>(count, all.size()));
  return all;
}

std::vector<Hypothesis> search(const Table& model, const flow::BeamSearch& options, std::uint32_t max_tokens) {
  const std::vector<TokenId> stops{kStop};
  Beam beam(options, max_tokens, stops);
  std::vector<std::vector<TokenId>> live{{}};
  std::uint32_t rounds = 0;
  while (!live.empty()) {
    EXPECT_LE(++rounds, max_tokens);
    std::vector<std::vector<sample::Candidate>> offers;
    for (const auto& tokens : live) {
      offers.push_back(likeliest(model, tokens, Beam::num_candidates(options, stops.size())));
    }
    std::vector<std::vector<TokenId>> next;
    for (const Beam::Continuation& step : beam.advance(offers)) {
      next.push_back(live[step.parent]);
      next.back().push_back(step.token);
    }
    EXPECT_LE(next.size(), options.width);
    live = std::move(next);
  }
  return {beam.best().begin(), beam.best().end()};
}

struct Found {
  std::vector<TokenId> tokens;
  double sum = 0.0;
  double score = 0.0;
};

double score_of(double sum, std::size_t tokens, double penalty) {
  return sum / std::pow(static_cast<double>(tokens), penalty);
}

// The definition, without an early end and over all tokens: prefixes as they stand.
std::vector<Found> brute_force_beam(const Table& model, const flow::BeamSearch& options, std::uint32_t max_tokens) {
  std::vector<Found> live{{}};
  std::vector<Found> done;
  for (std::uint32_t round = 0; round < max_tokens && !live.empty(); ++round) {
    struct Step {
      Found found;
      std::size_t parent;
    };
    std::vector<Step> all;
    for (std::size_t parent = 0; parent < live.size(); ++parent) {
      for (TokenId token = 0; token < static_cast<TokenId>(kVocab); ++token) {
        Found next = live[parent];
        next.sum += model(next.tokens, token);
        next.tokens.push_back(token);
        all.push_back({next, parent});
      }
    }
    std::ranges::stable_sort(all, [](const Step& a, const Step& b) {
      if (a.found.sum != b.found.sum) return a.found.sum > b.found.sum;
      if (a.parent != b.parent) return a.parent < b.parent;
      return a.found.tokens.back() < b.found.tokens.back();
    });
    live.clear();
    for (Step& step : all) {
      if (live.size() == options.width) break;
      step.found.score = score_of(step.found.sum, step.found.tokens.size(), options.length_penalty);
      (step.found.tokens.back() == kStop ? done : live).push_back(step.found);
    }
  }
  for (Found& one : live) {
    one.score = score_of(one.sum, one.tokens.size(), options.length_penalty);
    done.push_back(one);
  }
  std::ranges::stable_sort(done, [](const Found& a, const Found& b) { return a.score > b.score + 1e-5; });
  done.resize(std::min<std::size_t>(done.size(), options.num_best));
  return done;
}

TEST(Beam, IsTheDefinitionWithOrWithoutTiesForAnyWidthAndPenalty) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Table model = table(seed, seed % 2 ? 3 : 1000);
    for (const double penalty : {1.0, 0.0}) {
      const std::uint32_t width = 1 + seed % 4;
      const flow::BeamSearch options{width, 1 + seed / 4 % width, penalty};
      const std::uint32_t max_tokens = 1 + seed % 5;
      const auto expected = brute_force_beam(model, options, max_tokens);
      const auto got = search(model, options, max_tokens);
      ASSERT_EQ(got.size(), expected.size()) << "seed " << seed;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].tokens, expected[i].tokens) << "seed " << seed << " penalty " << penalty << " best " << i;
        EXPECT_EQ(got[i].sum, expected[i].sum);
      }
    }
  }
}

// Every sequence that ends in a stop token or at max_tokens.
void enumerate(const Table& model, Found found, std::uint32_t max_tokens, std::vector<Found>& all) {
  for (TokenId token = 0; token < static_cast<TokenId>(kVocab); ++token) {
    Found next = found;
    next.sum += model(next.tokens, token);
    next.tokens.push_back(token);
    if (token == kStop || next.tokens.size() == max_tokens) {
      all.push_back(next);
    } else {
      enumerate(model, next, max_tokens, all);
    }
  }
}

TEST(Beam, WideEnoughItFindsTheBestOfAllSequencesWhateverThePenalty) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Table model = table(seed, 100000);
    for (const double penalty : {-1.0, 0.0, 0.5, 1.0, 2.0}) {
      std::vector<Found> all;
      enumerate(model, {}, 4, all);
      for (Found& one : all) one.score = score_of(one.sum, one.tokens.size(), penalty);
      std::ranges::sort(all, [](const Found& a, const Found& b) { return a.score > b.score; });
      const auto got = search(model, {.width = 81, .num_best = 5, .length_penalty = penalty}, 4);
      ASSERT_EQ(got.size(), 5u);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i].score, all[i].score, 1e-5 * std::abs(all[i].score)) << "seed " << seed;
      }
    }
  }
}

TEST(Beam, OfEqualContinuationsTheLowerParentAndThenTheLowerTokenGoesOn) {
  const Table flat = [](const std::vector<TokenId>&, TokenId) { return -1.0f; };
  const auto got = search(flat, {.width = 2, .num_best = 2, .length_penalty = 0.0}, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].tokens, (std::vector<TokenId>{0, 0}));
  EXPECT_EQ(got[1].tokens, (std::vector<TokenId>{0, 1}));
}

TEST(Beam, AMaskedTokenIsNoContinuation) {
  const std::vector<TokenId> stops{kStop};
  Beam beam({.width = 2, .num_best = 1, .length_penalty = 1.0}, 3, stops);
  const float masked = -std::numeric_limits<float>::infinity();
  const std::vector<std::vector<sample::Candidate>> offers{{{1, -0.5f}, {2, masked}, {0, masked}}};
  const auto steps = beam.advance(offers);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].token, 1);
}

}  // namespace
}  // namespace quire::engine::beam_test
