#include "core/text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::text {
namespace {

using ::testing::ElementsAre;
using Behavior = PreTokenizer::Behavior;

std::vector<std::string> words(const std::vector<PreTokenizer::Step>& steps, std::string text, bool at_start = true) {
  PreTokenizer pre_tokenizer;
  for (const PreTokenizer::Step& step : steps) pre_tokenizer.add(step);
  const Words cut = pre_tokenizer.apply(std::move(text), at_start);
  std::vector<std::string> shown;
  for (const Words::Range& range : cut.ranges) shown.push_back(cut.text.substr(range.begin, range.end - range.begin));
  return shown;
}

PreTokenizer::Split at_hyphens(Behavior behavior, bool invert = false) {
  return {Pattern::literal("-"), behavior, invert};
}

TEST(PreTokenizer, SplitsByEachBehavior) {
  const std::string text = "the-final--countdown";  // the `tokenizers` package's own example
  EXPECT_THAT(words({at_hyphens(Behavior::kRemoved)}, text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(words({at_hyphens(Behavior::kIsolated)}, text), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(words({at_hyphens(Behavior::kMergedWithPrevious)}, text),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(words({at_hyphens(Behavior::kMergedWithNext)}, text), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(words({at_hyphens(Behavior::kContiguous)}, text), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(words({at_hyphens(Behavior::kRemoved, true)}, text), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizer, LaterSplitsSeeOnlyOneWordAtATime) {
  const PreTokenizer::Split letters = {Pattern::regex(R"(a\-?)"), Behavior::kIsolated, false};
  EXPECT_THAT(words({at_hyphens(Behavior::kIsolated), letters}, "a-ba"), ElementsAre("a", "-", "b", "a"));
}

TEST(PreTokenizer, PrefixesEveryWordOrTheInputsFirst) {
  const PreTokenizer::Prefix every = {"▁", false}, first = {"▁", true};
  EXPECT_THAT(words({at_hyphens(Behavior::kRemoved), every}, "a-▁b-c"), ElementsAre("▁a", "▁b", "▁c"));
  EXPECT_THAT(words({at_hyphens(Behavior::kRemoved), first}, "a-b"), ElementsAre("▁a", "b"));
  EXPECT_THAT(words({at_hyphens(Behavior::kRemoved), first}, "-b"), ElementsAre("b"));
  EXPECT_THAT(words({first}, "a", false), ElementsAre("a"));
}

TEST(PreTokenizer, SpellsBytesAsGpt2Does) {
  EXPECT_THAT(words({PreTokenizer::ByteLevel{}}, " é\n\x7F"), ElementsAre("ĠÃ©Ċġ"));
}

TEST(PreTokenizer, MakesNoWordsOfNothing) {
  EXPECT_THAT(words({PreTokenizer::Prefix{" ", false}, PreTokenizer::ByteLevel{}}, ""), ElementsAre());
}

}  // namespace
}  // namespace quire::text
