// Acceptance probabilities that lookup drafters estimate come true at that rate, on texts of several kinds that they read
// for the first time.
#include "core/speculate/lookup/foresight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "core/speculate/lookup/lookahead_drafter.h"
#include "core/speculate/lookup/rest_drafter.h"
#include "core/speculate/lookup/suffix_drafter.h"
#include "tests/core/speculate/lookup/listed_texts.h"
#include "tests/support/drafted_text.h"
#include "tests/support/temporary_file.h"

namespace quire::speculate::foresight_test {
namespace {

using test::DraftedText;
using test::TemporaryFile;
using test::Tokens;

// Each token is one of a few that may stand behind the last two, the first of them mostly.
Tokens babble(std::size_t count, std::uint32_t vocab, double usual, unsigned seed) {
  std::mt19937 random(seed);
  Tokens text = {1, 2};
  while (text.size() < count) {
    const auto key = static_cast<std::uint32_t>(text[text.size() - 2] * 131 + text.back() * 17);
    const bool is_usual = random() % 1000 < 1000 * usual;
    const std::uint32_t which = is_usual ? 0 : 1 + random() % 4;
    text.push_back(static_cast<TokenId>((key * 2654435761u + which * 40503u) >> 8) % static_cast<TokenId>(vocab));
  }
  return text;
}

// Pieces of what was said before, of any length, with new tokens between them.
Tokens quotes(std::size_t count, std::uint32_t vocab, unsigned seed) {
  std::mt19937 random(seed);
  Tokens text = {1, 2};
  while (text.size() < count) {
    const std::size_t from = random() % text.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % 12, text.size() - from);
    for (std::size_t i = 0; i < length; ++i) text.push_back(text[from + i]);
    if (random() % 2 == 0) text.push_back(static_cast<TokenId>(random() % vocab));
  }
  text.resize(count);
  return text;
}

struct Reported {
  double promised = 0.0;
  double right = 0.0;
  double num = 0.0;
};

// By depth, of what is promised behind every token of the text's second half.
std::vector<Reported> told(Drafter& drafter, const Tokens& all) REQUIRES(engine_role) {
  std::vector<Reported> out(4);
  DraftedText text(drafter, 1, Tokens(all.begin(), all.begin() + 2));
  for (std::size_t next = 2; next + 8 < all.size(); ++next) {
    text.say({{all[next]}});
    const sample::TokenTree tree = text.draft(12, 4);
    if (next < all.size() / 2) continue;
    std::vector<bool> right(tree.size());
    for (std::uint32_t i = 0; i < tree.size(); ++i) {
      const int parent = tree.parent(i);
      const std::uint32_t depth = tree.depth(i);
      right[i] = (parent < 0 || right[static_cast<std::size_t>(parent)]) && tree.token(i) == all[next + depth];
      Reported& level = out[depth - 1];
      level.promised += static_cast<double>(tree.likely(i));
      level.right += right[i] ? 1.0 : 0.0;
      level.num += 1.0;
    }
  }
  return out;
}

constexpr double kBound = 0.05;  // of the share that was right

void expect_honest(Drafter& drafter, const Tokens& all) REQUIRES(engine_role) {
  std::uint32_t depth = 0;
  for (const Reported& level : told(drafter, all)) {
    ++depth;
    if (level.num < 500) continue;
    EXPECT_NEAR(level.promised / level.num, level.right / level.num, kBound) << drafter.method() << ", depth " << depth;
  }
}

std::vector<Tokens> some_texts() {
  return {babble(6000, 40, 0.95, 1), babble(6000, 200, 0.6, 2), babble(6000, 30, 0.2, 3), quotes(6000, 500, 4)};
}

TEST(StepCalibration, OfSuffixesPromisesWhatComesTrue) {
  const RoleScope role(engine_role);
  for (const std::uint32_t width : {1u, 16u}) {
    for (const Tokens& text : some_texts()) {
      SuffixDrafter drafter({.max_spec_offset = 1, .width = width});
      expect_honest(drafter, text);
    }
  }
}

TEST(StepCalibration, OfAPoolOfNgramsPromisesWhatComesTrue) {
  const RoleScope role(engine_role);
  for (const Tokens& text : some_texts()) {
    LookaheadDrafter drafter({});
    expect_honest(drafter, text);
  }
}

// A text of the same kind as those in the store, and one that none of them resembles.
TEST(StepCalibration, OfADatastorePromisesWhatComesTrue) {
  const RoleScope role(engine_role);
  const TemporaryFile file;
  DatastoreBuilder builder;
  for (unsigned seed = 20; seed < 30; ++seed) builder.add(babble(800, 200, 0.6, seed));
  for (unsigned seed = 30; seed < 35; ++seed) builder.add(quotes(800, 60, seed));
  ASSERT_TRUE(builder.write(file.path(), 99).ok());
  for (const Tokens& text : {babble(6000, 200, 0.6, 2), quotes(6000, 60, 4), test::random_tokens(6000, 60, 5)}) {
    RestDrafter drafter({.datastore = file.path()}, 99);
    expect_honest(drafter, text);
  }
}

TEST(StepCalibration, IsTheCountsShareAsFarAsTokensAreAlikeUntilItIsTested) {
  sample::TokenTree tree;
  tree.add(5, -1, 0.5f);
  tree.add(6, 0, 0.5f);
  tree.add(7, -1, 0.25f);
  StepCalibration foresight;
  StepCalibration::Draft draft;
  foresight.promise(tree, 3, 10, draft);
  EXPECT_FLOAT_EQ(tree.likely(0), 0.5f * 3 / 4);
  EXPECT_FLOAT_EQ(tree.likely(1), 0.5f * 3 / 4 * 4 / 5);
  EXPECT_FLOAT_EQ(tree.likely(2), 0.25f * 3 / 4);
  EXPECT_EQ(tree.parent(1), 0);
}

TEST(StepCalibration, LearnsOfStepsWhoseWayWasRightAlone) {
  StepCalibration foresight;
  const auto promised = [&](std::uint32_t depth) {
    sample::TokenTree tree;
    for (std::uint32_t i = 0; i < 3; ++i) tree.add(static_cast<TokenId>(i), static_cast<int>(i) - 1, 1.0f);
    StepCalibration::Draft draft;
    foresight.promise(tree, 1, 0, draft);
    return depth == 0 ? tree.likely(0) : tree.likely(depth) / tree.likely(depth - 1);
  };
  const float first = promised(0);
  const float third = promised(2);  // of another length than the first
  for (int i = 0; i < 50; ++i) {
    sample::TokenTree tree;
    for (std::uint32_t n = 0; n < 3; ++n) tree.add(static_cast<TokenId>(n), static_cast<int>(n) - 1, 1.0f);
    StepCalibration::Draft draft;
    foresight.promise(tree, 1, 1, draft);
    foresight.learn(draft, Tokens{9, 8, 1, 2});  // wrong at once
    EXPECT_EQ(draft.size, 0u);
  }
  EXPECT_LT(promised(0), first / 10);
  EXPECT_FLOAT_EQ(promised(2), third);
}

}  // namespace
}  // namespace quire::speculate::foresight_test
