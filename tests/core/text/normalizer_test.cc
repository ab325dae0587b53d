#include "core/text/normalizer.h"

#include <gtest/gtest.h>

namespace quire::text {
namespace {

std::string after(Normalizer::Step step, std::string text) {
  Normalizer normalizer;
  normalizer.add(std::move(step));
  return normalizer.apply(std::move(text));
}

TEST(Normalizer, WithoutStepsChangesNothing) { EXPECT_EQ(Normalizer().apply(" A\u0301 "), " A\u0301 "); }

TEST(Normalizer, StripsBlanksOnTheSidesAskedFor) {
  const std::string text = "\u3000 a b \n";
  EXPECT_EQ(after(Normalizer::Strip{true, false}, text), "a b \n");
  EXPECT_EQ(after(Normalizer::Strip{false, true}, text), "\u3000 a b");
  EXPECT_EQ(after(Normalizer::Strip{true, true}, text), "a b");
  EXPECT_EQ(after(Normalizer::Strip{true, true}, " \n\t"), "");
}

TEST(Normalizer, PrependsOnlyToText) {
  EXPECT_EQ(after(Normalizer::Prepend{"▁"}, "a"), "▁a");
  EXPECT_EQ(after(Normalizer::Prepend{"▁"}, ""), "");
}

TEST(Normalizer, ReplacesEveryMatch) {
  EXPECT_EQ(after(Normalizer::Replace{Pattern::literal(" "), "▁"}, " a  b"), "▁a▁▁b");
  EXPECT_EQ(after(Normalizer::Replace{Pattern::regex(" {2,}"), ""}, "a  b c   "), "ab c");
}

// U+07FD and U+1ACE came later than the tables that published tokenizers strip with; U+1CF2 is no mark any more.
TEST(Normalizer, StripAccentsKnowsTheMarksOfAnOlderUnicode) {
  EXPECT_EQ(after(Normalizer::StripAccents{}, "a\u07FD\u1ACE"), "a\u07FD\u1ACE");
  EXPECT_EQ(after(Normalizer::StripAccents{}, "a\u1CF2\u0300b"), "ab");
}

TEST(Normalizer, StripAccentsDropsMarksAndDecomposesNothing) {
  EXPECT_EQ(after(Normalizer::StripAccents{}, "e\u0301\u00E9\u093E"), "e\u00E9");
}

TEST(Normalizer, RunsItsStepsInOrder) {
  Normalizer normalizer;
  normalizer.add(NormalForm::kNfd);
  normalizer.add(Normalizer::StripAccents{});
  normalizer.add(Normalizer::Lowercase{});
  EXPECT_EQ(normalizer.apply("ÉCOLE"), "ecole");
}

}  // namespace
}  // namespace quire::text
