#include "core/text/unicode/unicode.h"

#include <gtest/gtest.h>

#include "core/text/unicode/char_class.h"

namespace quire::text {
namespace {

TEST(Unicode, IsOfVersionSixteen) {
  EXPECT_EQ(category_of(0x1C89), Category::kLu);   // CYRILLIC CAPITAL LETTER TJE, new in 16.0
  EXPECT_EQ(category_of(0x10D40), Category::kNd);  // GARAY DIGIT ZERO, new in 16.0
  EXPECT_EQ(category_of(0x20C1), Category::kCn);   // SAUDI RIYAL SIGN, new in 17.0
  EXPECT_EQ(category_of(0x10FFFF), Category::kCn);
}

TEST(Unicode, NamesCategoriesByOneLetterOrTwo) {
  EXPECT_EQ(category_set("Nd"), set_of(Category::kNd));
  EXPECT_EQ(category_set("N"), set_of(Category::kNd) | set_of(Category::kNl) | set_of(Category::kNo));
  EXPECT_FALSE(category_set("Latin"));
  EXPECT_FALSE(category_set(""));
  EXPECT_FALSE(category_set("uL"));
}

TEST(Unicode, ComposesAndDecomposes) {
  struct Row {
    const char *text, *nfc, *nfd, *nfkc, *nfkd;
  };
  // UAX #15, figures 3 to 6, and Hangul.
  const Row rows[] = {
      {"\u212B", "\u00C5", "A\u030A", "\u00C5", "A\u030A"},
      {"\u1E9B\u0323", "\u1E9B\u0323", "\u017F\u0323\u0307", "\u1E69", "s\u0323\u0307"},
      {"\u1E0B\u0323", "\u1E0D\u0307", "d\u0323\u0307", "\u1E0D\u0307", "d\u0323\u0307"},
      {"\uFB01", "\uFB01", "\uFB01", "fi", "fi"},
      {"2\u2075", "2\u2075", "2\u2075", "25", "25"},
      {"\uAC01", "\uAC01", "\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8"},
      {"\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8"},
      {"\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C"},  // excluded from composition
      {"plain", "plain", "plain", "plain", "plain"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(normalized(row.text, NormalForm::kNfc), row.nfc) << row.text;
    EXPECT_EQ(normalized(row.text, NormalForm::kNfd), row.nfd) << row.text;
    EXPECT_EQ(normalized(row.text, NormalForm::kNfkc), row.nfkc) << row.text;
    EXPECT_EQ(normalized(row.text, NormalForm::kNfkd), row.nfkd) << row.text;
  }
}

TEST(Unicode, DoesNotComposeAcrossABlockingMark) {
  EXPECT_EQ(normalized("a\u0327\u0301", NormalForm::kNfc), "\u00E1\u0327");   // other class between: composes
  EXPECT_EQ(normalized("a\u0301\u0301", NormalForm::kNfc), "\u00E1\u0301");   // same class: only the first
  EXPECT_EQ(normalized("\u1100a\u1161", NormalForm::kNfc), "\u1100a\u1161");  // a starter between
  EXPECT_EQ(normalized("\u0301a", NormalForm::kNfc), "\u0301a");              // begins with a mark
}

TEST(Unicode, LowercasesCharacterByCharacter) {
  EXPECT_EQ(lowercased("ÀΣ \u0130İ ẞ 𐐀"), "àσ i\u0307i\u0307 ß 𐐨");
  EXPECT_EQ(lowercased("\u0100\u0101\u01CD\u01CE"), "\u0101\u0101\u01CE\u01CE");
}

TEST(Unicode, KnowsWordCharacters) {
  for (const char32_t code : {U'a', U'_', U'7', U'\u0301', U'\u200D', U'\u24B6', U'中'})
    EXPECT_TRUE(is_word(code)) << +code;
  for (const char32_t code : {U' ', U'-', U'½', U'€', U'\u2028'}) EXPECT_FALSE(is_word(code)) << +code;
}

TEST(CharClass, HoldsExactlyItsRangesInAndAboveTheBasicPlane) {
  const CharClass odd({{0x10, 0x20}, {0x20, 0x22}, {0xFFFE, 0x10001}, {0x20000, 0x20000}});
  for (const char32_t code : {0x10, 0x22, 0xFFFE, 0xFFFF, 0x10000, 0x10001, 0x20000}) EXPECT_TRUE(odd.contains(code));
  for (const char32_t code : {0x0F, 0x23, 0xFFFD, 0x10002, 0x1FFFF, 0x20001}) EXPECT_FALSE(odd.contains(code));
  const CharClass even(complement({{0x10, 0x22}, {0xFFFE, 0x10001}, {0x20000, 0x20000}}));
  for (char32_t code = 0; code <= kMaxCodePoint; ++code) ASSERT_NE(odd.contains(code), even.contains(code)) << +code;
}

TEST(CharClass, ComplementOfNothingIsEverything) {
  EXPECT_TRUE(CharClass(complement({})).contains(kMaxCodePoint));
  EXPECT_TRUE(complement({{0, kMaxCodePoint}}).empty());
}

}  // namespace
}  // namespace quire::text
