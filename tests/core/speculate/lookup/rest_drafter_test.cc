#include "core/speculate/lookup/rest_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/start_error.h"
#include "tests/core/speculate/lookup/listed_texts.h"
#include "tests/support/drafted_text.h"
#include "tests/support/temporary_file.h"

namespace quire::speculate::rest_drafter_test {
namespace {

using test::DraftedText;
using test::Listed;
using test::random_tokens;
using test::TemporaryFile;
using test::Tokens;
using test::tokens_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kKey = 99;

void build(const std::vector<Tokens>& texts, const std::string& path) {
  DatastoreBuilder builder;
  for (const Tokens& text : texts) builder.add(text);
  ASSERT_TRUE(builder.write(path, kKey).ok());
}

// What follows the longest match anywhere, in order.
Listed naive(const std::vector<Tokens>& texts, const Tokens& context, std::size_t longest, std::size_t shortest) {
  Listed out;
  for (std::size_t length = std::min(longest, context.size()); length >= shortest && out.texts.empty(); --length) {
    for (const Tokens& text : texts) {
      for (std::size_t end = length; end <= text.size(); ++end) {
        if (!std::equal(context.end() - length, context.end(), text.begin() + (end - length))) continue;
        out.texts.emplace_back(text.begin() + end, text.end());
      }
    }
  }
  std::ranges::sort(out.texts);
  return out;
}

std::vector<Tokens> paths(const sample::TokenTree& tree) {
  std::vector<Tokens> out;
  for (std::uint32_t node = 0; node < tree.size(); ++node) {
    Tokens path;
    for (int i = static_cast<int>(node); i >= 0; i = tree.parent(i)) path.insert(path.begin(), tree.token(i));
    out.push_back(path);
  }
  return out;
}

TEST(RestDrafter, ProposesTheMostFrequentContinuationsOfTheLongestMatch) {
  const RoleScope role(engine_role);
  const TemporaryFile file;
  for (const int vocab : {1, 2, 4, 30}) {
    std::vector<Tokens> texts;
    for (unsigned i = 0; i < 30; ++i) texts.push_back(random_tokens(5 + i, vocab, i));
    build(texts, file.path());
    const RestOptions options{.datastore = file.path(), .max_match = 5, .min_match = 2, .max_occurrences = 65536};
    RestDrafter drafter(options, kKey);
    DraftedText text(drafter, 1, {0});
    for (const TokenId token : random_tokens(200, vocab, 77)) {
      text.say({{token}});
      const sample::TokenTree tree = text.draft(16, 6);
      const Listed expected = naive(texts, text.tokens(), 5, 2);
      sample::TokenTree counted;
      Continuations().grow(expected, static_cast<std::uint32_t>(expected.texts.size()),
                           {16, 6, options.min_token_prob, options.width}, counted);
      ASSERT_EQ(tree.size(), counted.size());
      // Which of the equally likely ones get the last places is nobody's business.
      const std::vector<Tokens> drafted = paths(tree);
      const std::vector<Tokens> best = paths(counted);
      for (std::uint32_t node = 0; node < counted.size(); ++node) {
        if (counted.size() == 16 && counted.likely(node) <= counted.likely(15)) break;
        ASSERT_NE(std::ranges::find(drafted, best[node]), drafted.end()) << vocab;
      }
    }
  }
}

TEST(RestDrafter, OfManyOccurrencesItCountsEvenlySpacedOnes) {
  const RoleScope role(engine_role);
  const TemporaryFile file;
  std::vector<Tokens> texts(700, {1, 2, 3, 4});
  texts.insert(texts.end(), 300, {1, 2, 5, 6});
  build(texts, file.path());
  RestDrafter drafter({.datastore = file.path(), .max_occurrences = 10}, kKey);
  DraftedText text(drafter, 1, {9, 1, 2});
  const sample::TokenTree tree = text.draft(8);
  EXPECT_THAT(tokens_of(tree), ElementsAre(3, 4, 5, 6));
  // Two tokens are alike, and nothing is known of what that is worth: two thirds of the counts.
  EXPECT_FLOAT_EQ(tree.likely(0), 0.7f * 2 / 3);
  EXPECT_FLOAT_EQ(tree.likely(2), 0.3f * 2 / 3);
}

TEST(RestDrafter, ADraftTokenLooksAtFewPlaces) {
  const RoleScope role(engine_role);
  const TemporaryFile file;
  for (const int vocab : {1, 3, 20'000}) {
    build({random_tokens(100'000, vocab, 1)}, file.path());
    RestDrafter drafter({.datastore = file.path()}, kKey);
    DraftedText text(drafter, 1, random_tokens(500, vocab, 1));
    EXPECT_FALSE(text.draft(16).empty());
    EXPECT_LE(drafter.datastore().num_probes(), 2u * 18 * 5) << vocab;
  }
}

TEST(RestDrafter, HasNoDraftWhereTheMatchIsTooShort) {
  const RoleScope role(engine_role);
  const TemporaryFile file;
  build({{1, 2, 3, 4, 5}}, file.path());
  RestDrafter drafter({.datastore = file.path(), .max_match = 4, .min_match = 3}, kKey);
  for (const Tokens& tokens :
       {Tokens{}, Tokens{3}, Tokens{2, 3}, Tokens{9, 2, 3}, Tokens{3, 4, 5}, Tokens{7, 7, 7, 7}}) {
    EXPECT_TRUE(DraftedText(drafter, 1, tokens).draft(4).empty());
  }
  EXPECT_THAT(tokens_of(DraftedText(drafter, 1, {1, 2, 3}).draft(4)), ElementsAre(4, 5));
  EXPECT_THAT(tokens_of(DraftedText(drafter, 1, {9, 1, 2, 3}).draft(1)), ElementsAre(4));
  EXPECT_THAT(tokens_of(DraftedText(drafter, 1, {9, 1, 2, 3}).draft(4, 1)), ElementsAre(4));
}

TEST(RestDrafter, RefusesAStoreItCannotUseAndOptionsOutOfRangeAllAtOnce) {
  const TemporaryFile file;
  build({{1, 2}}, file.path());
  EXPECT_NO_THROW(RestDrafter({.datastore = file.path()}, kKey));
  EXPECT_THROW(RestDrafter({.datastore = file.path()}, kKey + 1), StartError);
  try {
    RestDrafter({.datastore = file.path() + ".none",
                 .max_match = 33,
                 .min_match = 0,
                 .max_occurrences = 0,
                 .min_token_prob = -1.0f},
                kKey);
    FAIL();
  } catch (const StartError& error) {
    for (const char* part : {"max_match 33", "min_match 0", "max_occurrences 0", "min_token_prob -1", "datastore: "}) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  EXPECT_THROW(RestDrafter({.datastore = file.path(), .max_match = 3, .min_match = 4}, kKey), StartError);
}

}  // namespace
}  // namespace quire::speculate::rest_drafter_test
