#include "core/grammar/rules/code_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::grammar::code_points_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CodePoints, AUnionHasOneForm) {
  EXPECT_THAT(united({{'m', 'z'}, {'a', 'f'}, {'g', 'k'}, {'e', 'g'}, {'q', 'q'}}),
              ElementsAre(CodePoints{'a', 'k'}, CodePoints{'m', 'z'}));
  EXPECT_THAT(united({{0xD000, 0xE001}}), ElementsAre(CodePoints{0xD000, 0xD7FF}, CodePoints{0xE000, 0xE001}));
  EXPECT_THAT(united({{0xD800, 0xDFFF}}), IsEmpty());
  EXPECT_THAT(united({}), IsEmpty());
}

TEST(CodePoints, AllButASetIsTheRestWithoutSurrogates) {
  EXPECT_THAT(all_but({}), ElementsAre(CodePoints{0, 0xD7FF}, CodePoints{0xE000, kLastCodePoint}));
  EXPECT_THAT(all_but({{0, 'a'}, {'c', kLastCodePoint}}), ElementsAre(CodePoints{'b', 'b'}));
  EXPECT_THAT(all_but(all_but({})), IsEmpty());
  EXPECT_THAT(all_but({{0, 0xD7FF}}), ElementsAre(CodePoints{0xE000, kLastCodePoint}));
}

TEST(CodePoints, Utf8IsReadStrictly) {
  EXPECT_EQ(decode_utf8("aé€🙂"), U"aé€🙂");
  EXPECT_EQ(decode_utf8(""), U"");
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF", "\xE2\x82", "\xE2\x82g", "a\xC3"}) {
    EXPECT_FALSE(decode_utf8(bad).has_value());
  }
}

TEST(CodePoints, WhatIsWrittenAsUtf8IsReadAgain) {
  for (const char32_t c : {0x0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(decode_utf8(text), std::u32string(1, c));
  }
}

}  // namespace
}  // namespace quire::grammar::code_points_test
