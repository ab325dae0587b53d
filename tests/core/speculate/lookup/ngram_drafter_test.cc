#include "core/speculate/lookup/ngram_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/start_error.h"
#include "tests/core/speculate/lookup/listed_texts.h"
#include "tests/support/drafted_text.h"

namespace quire::speculate::ngram_drafter_test {
namespace {

using test::DraftedText;
using test::random_tokens;
using test::same;
using test::Tokens;
using test::tokens_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The longest run of low..high tokens that the text ends with and that stood there before; where its newest such place
// ends.
struct Match {
  std::size_t n = 0;
  std::size_t behind = 0;
};
Match naive_match(std::span<const TokenId> text, std::size_t low, std::size_t high) {
  for (std::size_t n = high; n >= low; --n) {
    for (std::size_t end = text.size(); end-- > n;) {  // exclusive, and before the text's own
      if (std::ranges::equal(text.subspan(end - n, n), text.last(n))) return {n, end};
    }
  }
  return {};
}

// What the text says if it goes on as it did behind the match.
Tokens naive_draft(const Tokens& text, Match match, std::size_t count) {
  Tokens out = text;
  while (match.n > 0 && out.size() < text.size() + count) out.push_back(out[match.behind + out.size() - text.size()]);
  return {out.begin() + static_cast<std::ptrdiff_t>(text.size()), out.end()};
}

TEST(NgramDrafter, ProposesWhatStoodBehindTheNewestPlaceOfTheLongestRepeat) {
  const RoleScope role(engine_role);
  for (const auto& [low, high] : {std::pair{1u, 1u}, {1u, 3u}, {2u, 4u}, {3u, 7u}}) {
    for (const int vocab : {1, 2, 3, 8}) {
      SCOPED_TRACE(::testing::Message() << low << ".." << high << " vocab " << vocab);
      NgramDrafter drafter({low, high});
      DraftedText text(drafter, 1, random_tokens(1 + vocab, vocab, 1));
      for (const TokenId token : random_tokens(300, vocab, low * 10 + high)) {
        text.say({{token}});
        const sample::TokenTree tree = text.draft(12);
        ASSERT_TRUE(tree.is_chain());
        ASSERT_EQ(tokens_of(tree), naive_draft(text.tokens(), naive_match(text.tokens(), low, high), 12));
      }
    }
  }
}

TEST(NgramDrafter, ItsChanceIsHowOftenARunOfThatLengthWasRightSoFar) {
  const RoleScope role(engine_role);
  constexpr std::uint32_t kLow = 1, kHigh = 3;
  NgramDrafter drafter({kLow, kHigh});
  const Tokens all = random_tokens(250, 3, 5);
  DraftedText text(drafter, 1, {all[0]});
  text.say(std::span(all).subspan(1));
  std::vector<float> tried(kHigh + 1, 2.0f), right(kHigh + 1, 1.0f);
  for (std::size_t next = 1; next < all.size(); ++next) {
    const Match match = naive_match(std::span(all).first(next), kLow, kHigh);
    if (match.n == 0) continue;
    tried[match.n] += 1.0f;
    right[match.n] += all[match.behind] == all[next] ? 1.0f : 0.0f;
  }
  const sample::TokenTree tree = text.draft(6);
  ASSERT_EQ(tree.size(), 6u);
  const std::size_t n = naive_match(all, kLow, kHigh).n;
  float likely = 1.0f;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const std::size_t by = std::min<std::size_t>(n + i, kHigh);
    likely *= right[by] / tried[by];
    EXPECT_EQ(tree.likely(i), likely);
  }
}

TEST(NgramDrafter, KnowsTheSameHoweverTheTextWasCutIntoSteps) {
  const RoleScope role(engine_role);
  const Tokens all = random_tokens(400, 4, 2);
  NgramDrafter drafter({});
  DraftedText whole(drafter, 1, all);
  whole.step(all.size());
  const sample::TokenTree expected = whole.draft(8);
  ASSERT_FALSE(expected.empty());
  for (const std::size_t chunk : {1u, 7u, 64u, 399u}) {
    DraftedText text(drafter, 10 + chunk, all);
    for (std::size_t done = 0; done < all.size(); done += chunk) text.step(chunk);
    EXPECT_TRUE(same(text.draft(8), expected)) << chunk;
  }
  DraftedText unseen(drafter, 2, all);
  EXPECT_TRUE(same(unseen.draft(8), expected));
  whole.release(false);
  EXPECT_TRUE(same(whole.draft(8), expected));  // back without being admitted again
  whole.release(false);
  whole.admit();
  whole.step(all.size());
  EXPECT_TRUE(same(whole.draft(8), expected));
}

TEST(NgramDrafter, KeepsToWhatItIsAskedFor) {
  const RoleScope role(engine_role);
  NgramDrafter drafter({});
  DraftedText text(drafter, 1, {1, 2, 3, 1, 2, 3, 1, 2});
  EXPECT_THAT(tokens_of(text.draft(1)), ElementsAre(3));
  EXPECT_THAT(tokens_of(text.draft(9, 2)), ElementsAre(3, 1));
  EXPECT_EQ(text.draft(1000, 1000).size(), sample::TokenTree::kMaxNodes);
}

TEST(NgramDrafter, HasNoDraftForTextsThatAreTooShortOrWithoutRepeats) {
  const RoleScope role(engine_role);
  NgramDrafter drafter({1, 4});
  for (const Tokens& tokens : {Tokens{}, Tokens{5}, Tokens{5, 6}, Tokens{1, 2, 3, 4, 5}}) {
    DraftedText text(drafter, tokens.size(), tokens);
    text.step(9);
    EXPECT_TRUE(text.draft(8).empty());
  }
}

TEST(NgramDrafter, HasNoDraftForATextOtherThanTheOneObserved) {
  const RoleScope role(engine_role);
  NgramDrafter drafter({});
  DraftedText text(drafter, 1, Tokens(20, 7));
  text.step(20);
  const Tokens shorter(10, 7);
  const Asked asked{SeqId(1), shorter, {}, nullptr, 4, 4};
  sample::TokenTree tree;
  drafter.propose({&asked, 1}, {&tree, 1});
  EXPECT_TRUE(tree.empty());
}

TEST(NgramDrafter, ATokenCostsTheSameHoweverLongTheText) {
  const RoleScope role(engine_role);
  constexpr std::size_t kTokens = 100'000;
  for (const int vocab : {1, 2, 30'000}) {
    NgramDrafter drafter({});
    DraftedText text(drafter, 1, random_tokens(kTokens, vocab, 3));
    for (std::size_t done = 0; done < kTokens; done += 512) text.step(512);
    text.draft(8);
    EXPECT_LT(drafter.num_probes(), 3 * 6 * kTokens) << vocab;
    EXPECT_LE(drafter.bytes(), 3 * 16 * kTokens) << vocab;
    text.release(true);
    EXPECT_EQ(drafter.bytes(), 0u);
  }
}

TEST(NgramDrafter, RefusesLengthsOutOfRangeAllAtOnce) {
  EXPECT_NO_THROW(NgramDrafter({1, 1}));
  EXPECT_NO_THROW(NgramDrafter({32, 32}));
  EXPECT_THROW(NgramDrafter({0, 1}), StartError);
  EXPECT_THROW(NgramDrafter({1, 33}), StartError);
  EXPECT_THROW(NgramDrafter({3, 2}), StartError);
  try {
    NgramDrafter({33, 34});
    FAIL();
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("prompt_lookup_min 33"), HasSubstr("prompt_lookup_max 34")));
  }
}

}  // namespace
}  // namespace quire::speculate::ngram_drafter_test
