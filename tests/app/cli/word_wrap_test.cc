#include "app/cli/word_wrap.h"

#include <gtest/gtest.h>

namespace quire::app::word_wrap_test {
namespace {

TEST(WordWrap, LinesHaveAtMostTheWidth) {
  EXPECT_EQ(wrapped("aaa bb cc", 2, 8), "  aaa bb\n  cc\n");
  EXPECT_EQ(wrapped("aaa bb cc", 2, 7), "  aaa\n  bb cc\n");
  EXPECT_EQ(wrapped("", 2, 8), "");
}

TEST(WordWrap, AWordThatIsTooLongHasALineOfItsOwn) {
  EXPECT_EQ(wrapped("a bcdefghij k", 1, 6), " a\n bcdefghij\n k\n");
}

TEST(WordWrap, ACharacterOfSeveralBytesIsOneColumn) { EXPECT_EQ(wrapped("ä… ü", 0, 4), "ä… ü\n"); }

TEST(WordWrap, PartsAreNotBroken) { EXPECT_EQ(in_lines({"[a b]", "[c d]"}, 1, 9), " [a b]\n [c d]\n"); }

TEST(WordWrap, AHeadStandsBeforeTheTextOrAboveIt) {
  EXPECT_EQ(with_head(" ab", "c d", 6, 8), " ab   c\n      d\n");
  EXPECT_EQ(with_head(" abcd", "e", 6, 8), " abcd\n      e\n");
  EXPECT_EQ(with_head(" ab", "", 6, 8), " ab\n");
}

}  // namespace
}  // namespace quire::app::word_wrap_test
