#include "core/text/unicode/utf8.h"

#include <gtest/gtest.h>

namespace quire::text {
namespace {

using namespace std::string_literals;

TEST(Utf8, ReplacesEachMaximalSubpartOnce) {
  // The Unicode Standard, section 3.9, table 3-8, and its neighbours.
  EXPECT_EQ(with_replacement_characters("a\xF1\x80\x80\xE1\x80\xC2"
                                        "b\x80"
                                        "c\x80\xBF"
                                        "d"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
}

TEST(Utf8, ReplacesOverlongFormsSurrogatesAndWhatIsPastTheLastCharacterByteByByte) {
  EXPECT_EQ(with_replacement_characters("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xF8\x88"), "\uFFFD\uFFFD");
}

TEST(Utf8, ReplacesAnEndTooEarlyOnce) {
  EXPECT_EQ(with_replacement_characters("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xF0\x9F\x98"), "\uFFFD");
}

TEST(Utf8, KeepsValidTextWithItsFirstAndLastCharacterOfEveryLength) {
  const std::string text = "\0\x7F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF"s;
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(with_replacement_characters(text), text);
  EXPECT_EQ(utf8_of(code_points(text)), text);
}

TEST(Utf8, ReportsAnIncompleteCharacterFromAnInvalidOne) {
  EXPECT_EQ(utf8_head("\xE2\x82").kind, Utf8Head::Kind::kIncomplete);
  EXPECT_EQ(utf8_head("\xE2\x82\x41").kind, Utf8Head::Kind::kInvalid);
  EXPECT_EQ(utf8_head("\xED\xA0").kind, Utf8Head::Kind::kInvalid);
  EXPECT_EQ(utf8_head("\xE2\x82\xAC").kind, Utf8Head::Kind::kCharacter);
}

}  // namespace
}  // namespace quire::text
