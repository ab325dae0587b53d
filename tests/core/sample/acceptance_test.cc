// Tokens under ratio and block have the target's distribution, and the same statistic sees each known way to get that
// wrong.
#include "core/sample/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/core/sample/table_speech.h"
#include "tests/support/cases.h"

namespace quire::sample::acceptance_test {
namespace {

using ::testing::Each;

Params params_of(Accept accept, float temperature = 1.0f) {
  Params params;
  params.accept = accept;
  params.temperature = temperature;
  return params;
}

constexpr std::uint32_t kManySeeds = quire::testing::cases(200'000);

class AcceptanceDistribution : public ::testing::TestWithParam<Accept> {
 protected:
  static double strangeness_of(Flaw flaw, std::uint32_t count = 3, float apart = 4.0f) {
    TableSpeech speech(4, apart, params_of(GetParam()));
    return strangeness(speech.counts(count, flaw, kManySeeds), speech.distribution(count));
  }
};

TEST_P(AcceptanceDistribution, OfThreeTokensIsTheTargets) {
  EXPECT_LT(strangeness_of(Flaw::kNone), 1.0);
  EXPECT_LT(strangeness_of(Flaw::kNone, 3, 0.5f), 1.0);
  EXPECT_LT(strangeness_of(Flaw::kNone, 5), 1.0);  // several drafts, their noise at the same positions
}

TEST_P(AcceptanceDistribution, UnderFiltersIsTheTargets) {
  Params params = params_of(GetParam(), 0.7f);
  params.top_k = 3;
  params.min_p = 0.05f;
  TableSpeech filtered(4, 3.0f, params);
  EXPECT_LT(strangeness(filtered.counts(3, Flaw::kNone, kManySeeds), filtered.distribution(3)), 1.0);
  params = params_of(GetParam(), 1.3f);
  params.top_p = 0.8f;
  params.typical_p = 0.9f;
  TableSpeech typical(4, 3.0f, params);
  EXPECT_LT(strangeness(typical.counts(3, Flaw::kNone, kManySeeds), typical.distribution(3)), 1.0);
}

// 1,600 draws for each of 16 tokens and more: chance alone comes to 0.004.
TEST_P(AcceptanceDistribution, IsWithinOneInAHundredOfTheTargetsInTotalVariation) {
  TableSpeech speech(16, 4.0f, params_of(GetParam()));
  EXPECT_LT(total_variation(speech.counts(1, Flaw::kNone, kManySeeds), speech.distribution(1)), 0.01);
}

TEST_P(AcceptanceDistribution, IsSeenToBeAnotherWithNoiseThatIsShared) {
  EXPECT_GT(strangeness_of(Flaw::kResidualsNoise), 1.5);
  EXPECT_GT(strangeness_of(Flaw::kCoinsNoise), 1.5);
}

TEST_P(AcceptanceDistribution, IsSeenToBeAnotherWithoutTheResidual) {
  EXPECT_GT(strangeness_of(Flaw::kNoResidual), 1.5);
}

TEST_P(AcceptanceDistribution, IsSeenToBeAnotherWhereUnlikelyDraftTokensAreLeftOut) {
  EXPECT_GT(strangeness_of(Flaw::kDiscardThenStop), 1.5);
}

TEST_P(AcceptanceDistribution, IsSeenToBeAnotherWithTheDistributionOfAnotherRow) {
  EXPECT_GT(strangeness_of(Flaw::kAnothersDistribution), 1.5);
}

INSTANTIATE_TEST_SUITE_P(By, AcceptanceDistribution, ::testing::Values(Accept::kRatio, Accept::kBlock),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

TEST(Acceptance, WithACoinOfZeroIsSeenToHaveAnotherDistribution) {
  TableSpeech speech(4, 4.0f, params_of(Accept::kRatio));
  EXPECT_GT(strangeness(speech.counts(3, Flaw::kZeroCoin, kManySeeds), speech.distribution(3)), 1.5);
}

// Block looks at guesses behind those that it does not take; ratio never does.
TEST(Acceptance, OfABlockWithNoiseSeenBeforeIsSeenToHaveAnotherDistribution) {
  TableSpeech block(4, 4.0f, params_of(Accept::kBlock));
  EXPECT_GT(strangeness(block.counts(5, Flaw::kOldNoise, kManySeeds), block.distribution(5)), 1.5);
  TableSpeech ratio(4, 4.0f, params_of(Accept::kRatio));
  EXPECT_LT(strangeness(ratio.counts(5, Flaw::kOldNoise, kManySeeds), ratio.distribution(5)), 1.0);
}

TEST(Acceptance, TakesAFirstDraftTokenAsOftenAsTheDistributionsOverlap) {
  constexpr std::uint32_t kSeeds = quire::testing::cases(100'000);
  for (const float apart : {0.3f, 2.0f, 6.0f}) {
    TableSpeech speech(8, apart, params_of(Accept::kRatio));
    speech.counts(1, Flaw::kNone, kSeeds);
    EXPECT_NEAR(speech.first_taken(), speech.alpha(), 3.2 / std::sqrt(kSeeds)) << apart;
  }
}

TEST(Acceptance, ByBlockTakesMoreThanByRatio) {
  TableSpeech ratio(8, 3.0f, params_of(Accept::kRatio));
  TableSpeech block(8, 3.0f, params_of(Accept::kBlock));
  constexpr std::uint32_t kSeeds = quire::testing::cases(50'000);
  ratio.counts(1, Flaw::kNone, kSeeds);
  block.counts(1, Flaw::kNone, kSeeds);
  EXPECT_GT(block.num_taken(), ratio.num_taken() + kSeeds / 100);
}

// ---- siblings

constexpr std::uint32_t kVocab = 6;

enum class Siblings { kCertain, kPutBack, kNotPutBack, kNotPutBackWithOneDistribution };

std::vector<TokenProbability> without(std::vector<TokenProbability> distribution, TokenId token) {
  double left = 0.0;
  for (TokenProbability& one : distribution) {
    if (one.token == token) one.chance = 0.0f;
    left += static_cast<double>(one.chance);
  }
  for (TokenProbability& one : distribution) one.chance = static_cast<float>(static_cast<double>(one.chance) / left);
  return distribution;
}

// Three siblings, drawn as said, behind one row.
double strangeness_of(Siblings how) {
  const std::vector<float> row = bell_row(kVocab, 4.0f, 3);
  const std::vector<float> other = bell_row(kVocab, 4.0f, 4);
  const std::vector<double> distribution = reference_distribution(row, {});
  const std::vector<double> proposal = reference_distribution(other, {});
  std::vector<TokenProbability> first;
  for (std::size_t k = 0; k < proposal.size(); ++k) {
    first.push_back({static_cast<TokenId>(k), static_cast<float>(proposal[k])});
  }
  Params params = params_of(Accept::kRatio);
  Scratch scratch(kVocab);
  std::vector<double> counts(kVocab);
  for (std::uint32_t seed = 0; seed < kManySeeds; ++seed) {
    params.seed = seed;
    std::vector<std::vector<TokenProbability>> distributions = {first};
    std::vector<DraftToken> draft_tokens;
    for (std::uint32_t i = 0; i < 3; ++i) {
      double left = coin(seed, i, 9, 0, Domain::kProposal);
      TokenId token = -1;
      for (const TokenProbability& one : distributions.back()) {
        if (one.chance > 0.0f && (left >= 0.0 || token < 0)) token = one.token;
        left -= static_cast<double>(one.chance);
      }
      if (how == Siblings::kCertain) token = static_cast<TokenId>(2 * i);
      draft_tokens.push_back({token});
      distributions.push_back(how == Siblings::kPutBack ? first : without(distributions.back(), token));
    }
    for (std::size_t i = 0; i < 3 && how != Siblings::kCertain; ++i) {
      draft_tokens[i].distribution = how == Siblings::kNotPutBackWithOneDistribution ? first : distributions[i];
    }
    const VerifiedRow verified{row, highest_of(row), 9};
    counts[static_cast<std::size_t>(accept_or_resample(verified, draft_tokens, 1, params, scratch).token)] += 1.0;
  }
  return strangeness(counts, distribution);
}

TEST(AcceptanceOfSiblings, HasTheTargetsDistributionHoweverTheyWereDrawn) {
  EXPECT_LT(strangeness_of(Siblings::kCertain), 1.0);
  EXPECT_LT(strangeness_of(Siblings::kPutBack), 1.0);
  EXPECT_LT(strangeness_of(Siblings::kNotPutBack), 1.0);
}

TEST(AcceptanceOfSiblings, IsSeenToHaveAnotherDistributionWhereTheirDistributionsAreNotWhatTheyWereDrawnFrom) {
  EXPECT_GT(strangeness_of(Siblings::kNotPutBackWithOneDistribution), 1.5);
}

// ---- single cases

class AcceptanceCase : public ::testing::Test {
 protected:
  SampledToken verified(std::span<const DraftToken> draft_tokens, std::uint64_t seed = 1, const Edits& edits = {}) {
    params_.seed = seed;
    return accept_or_resample({row_, highest_of(row_), 7, edits, room_}, draft_tokens, 1, params_, scratch_);
  }

  std::vector<float> row_ = bell_row(kVocab, 3.0f, 8);
  Params params_ = params_of(Accept::kRatio);
  Scratch scratch_{kVocab};
  std::vector<Candidate> room_ = std::vector<Candidate>(4);
};

TEST_F(AcceptanceCase, TakesEveryDraftTokenThatIsDrawnFromTheRowItself) {
  std::vector<TokenProbability> distribution;
  const std::vector<double> target = reference_distribution(row_, {});
  for (std::size_t k = 0; k < kVocab; ++k)
    distribution.push_back({static_cast<TokenId>(k), static_cast<float>(target[k])});
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const DraftToken draft_token{static_cast<TokenId>(seed % kVocab), distribution};
    EXPECT_EQ(verified({&draft_token, 1}, seed).token, draft_token.token);
  }
}

TEST_F(AcceptanceCase, NeverTakesWhatTheRowForbidsOrFiltersOrDoesNotHave) {
  const TokenId forbidden = 2;
  const Edits edits{.forbidden = {&forbidden, 1}};
  const std::vector<TokenProbability> certain = {{2, 1.0f}};
  const std::vector<TokenProbability> outside = {{99, 1.0f}};
  const DraftToken draft_tokens[] = {{2}, {2, certain}, {99}, {99, outside}};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const TokenId said = verified(draft_tokens, seed, edits).token;
    EXPECT_TRUE(said >= 0 && said != 2 && said < static_cast<TokenId>(kVocab)) << said;
  }
  params_.top_k = 1;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const DraftToken draft_token{static_cast<TokenId>(seed % kVocab)};
    EXPECT_EQ(row_[static_cast<std::size_t>(verified({&draft_token, 1}, seed).token)], highest_of(row_).logit);
  }
}

TEST_F(AcceptanceCase, SamplesAnythingButADraftTokenThatItRejects) {
  const DraftToken draft_tokens[] = {{1}, {4}, {1}};
  bool seen[kVocab] = {};
  for (std::uint64_t seed = 0; seed < 2000; ++seed) seen[verified(draft_tokens, seed).token] = true;
  EXPECT_THAT(seen, Each(true));
}

TEST_F(AcceptanceCase, TakesTheOnlyTokenThatIsLeft) {
  const TokenId forbidden[] = {0, 1, 2, 4, 5};
  const std::vector<TokenProbability> rare = {{3, 1e-6f}, {1, 0.999999f}};
  for (const DraftToken draft_token : {DraftToken{3}, DraftToken{3, rare}}) {
    EXPECT_EQ(verified({&draft_token, 1}, 5, {.forbidden = forbidden}).token, 3);
  }
  const DraftToken wrong{1, rare};
  EXPECT_EQ(verified({&wrong, 1}, 5, {.forbidden = forbidden}).token, 3);
}

TEST_F(AcceptanceCase, ReportsTheLogprobsOfTheRow) {
  params_.logprob = true;
  params_.num_top = 3;
  const DraftToken draft_tokens[] = {{1}, {4}};
  const Edits edits{.frequency = 2.0f};
  const std::vector<double> logprobs = reference_logprobs(row_);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const SampledToken drawn = verified(draft_tokens, seed, edits);
    EXPECT_NEAR(drawn.logprob, logprobs[static_cast<std::size_t>(drawn.token)], 1e-5);
    EXPECT_EQ(drawn.top.size(), 3u);
  }
}

TEST_F(AcceptanceCase, OfARowThatIsNotFiniteSaysSo) {
  row_[3] = kNan;
  const DraftToken draft_token{1};
  const SampledToken drawn = verified({&draft_token, 1});
  EXPECT_FALSE(drawn.finite);
  EXPECT_EQ(drawn.token, -1);
}

TEST_F(AcceptanceCase, OfAChainGoesAsFarAsItsRowsAreFinite) {
  std::vector<std::vector<float>> logits(4, row_);
  logits[2][0] = kNan;
  params_.accept = Accept::kBlock;
  int ends[4] = {};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    params_.seed = seed;
    std::vector<VerifiedRow> rows;
    for (std::uint32_t i = 0; i < 4; ++i) rows.push_back({logits[i], highest_of(logits[i]), 7 + i});
    const auto likeliest = static_cast<TokenId>(std::ranges::max_element(row_) - row_.begin());
    const std::vector<DraftToken> chain(3, DraftToken{likeliest});
    std::vector<SampledToken> drawn(4);
    verify_chain(rows, chain, params_, scratch_, drawn);
    std::size_t end = 0;
    while (drawn[end].token == likeliest) ++end;
    ASSERT_LT(end, 3u);
    ++ends[end];
    EXPECT_EQ(drawn[end].finite, end < 2);
    for (std::size_t i = end + 1; i < 4; ++i) EXPECT_EQ(drawn[i].token, -1);
  }
  EXPECT_GT(ends[0], 0);
  EXPECT_GT(ends[1], 0);
  EXPECT_GT(ends[2], 0);
}

TEST(Accept, NamesAreKnownAgain) {
  for (const Accept accept : {Accept::kMatch, Accept::kRatio, Accept::kBlock}) {
    EXPECT_EQ(accept_named(name_of(accept)), accept);
  }
  EXPECT_FALSE(accept_named("Ratio").has_value());
  EXPECT_FALSE(accept_named("").has_value());
}

TEST(Accept, OfAGreedyRequestIsMatch) {
  EXPECT_FALSE(accepts_by_rejection(params_of(Accept::kRatio, 0.0f)));
  EXPECT_TRUE(accepts_by_rejection(params_of(Accept::kRatio, kGreedyTemperature)));
  EXPECT_FALSE(accepts_by_rejection(params_of(Accept::kMatch, 1.0f)));
}

}  // namespace
}  // namespace quire::sample::acceptance_test
