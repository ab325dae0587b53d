#include "core/text/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/start_error.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> matches(const char* source, std::string_view text) {
  std::vector<Pattern::Match> found;
  Pattern::regex(source).find_all(text, found);
  std::vector<std::string> texts;
  for (const Pattern::Match& match : found) texts.emplace_back(text.substr(match.begin, match.end - match.begin));
  return texts;
}

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(Pattern, SplitsAsLlama3Does) {
  EXPECT_THAT(matches(kLlama3, "I'VE 12345 (ok)!\n\n  x  \n "),
              ElementsAre("I", "'VE", " ", "123", "45", " (", "ok", ")!\n\n", " ", " x", "  \n", " "));
}

TEST(Pattern, LeavesTheLastBlankToTheWordBehindIt) {
  EXPECT_THAT(matches(R"( ?\p{L}+|\s+(?!\S)|\s+)", "a   b "), ElementsAre("a", "  ", " b", " "));
}

TEST(Pattern, FoldsTheLongSAndTheKelvinSignWhereCaseDoesNotCount) {
  EXPECT_THAT(matches("(?i:'s|k)", "'S 'ſ K \u212A s"), ElementsAre("'S", "'ſ", "K", "\u212A"));
}

TEST(Pattern, TakesAnOptionalEndingWhereItFits) {
  EXPECT_THAT(matches(R"(\p{L}+(?i:'s|'re)?)", "it's we'RE 'x"), ElementsAre("it's", "we'RE", "x"));
}

TEST(Pattern, GivesBackWhatAGreedyCountTookTooMuch) {
  EXPECT_THAT(matches(R"([ab]*[bc]+)", "aabbaab"), ElementsAre("aabbaab"));
  EXPECT_THAT(matches(R"(a{2,3}ab)", "aaaab aab aaab"), ElementsAre("aaaab", "aaab"));
}

TEST(Pattern, EndsALineAtItsFeedAndAtTheTextsEnd) {
  EXPECT_THAT(matches(R"( +$)", "a  b  \nc  "), ElementsAre("  ", "  "));
}

TEST(Pattern, ReadsSetsWithRangesEscapesAndComplements) {
  EXPECT_THAT(matches(R"([a-c\-\]\d_])", "bd-]7_x"), ElementsAre("b", "-", "]", "7", "_"));
  EXPECT_THAT(matches(R"([^\p{Ll}\s]+)", "abC Δδ"), ElementsAre("C", "Δ"));
  EXPECT_THAT(matches(R"([-a]+)", "a-b"), ElementsAre("a-"));
  EXPECT_THAT(matches(R"(\P{L}+)", "ab12-c"), ElementsAre("12-"));
}

TEST(Pattern, LiteralMeansEveryCharacterAsItStands) {
  std::vector<Pattern::Match> found;
  Pattern::literal(".*▁").find_all("a.*▁.*x", found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, 1u);
  EXPECT_EQ(found[0].end, 6u);
}

TEST(Pattern, FindsNothingInAnEmptyText) { EXPECT_THAT(matches("a", ""), IsEmpty()); }

TEST(Pattern, RefusesByNameWhatItDoesNotKnow) {
  const char* unknown[] = {
      "a+?",    "a++", "a*",    "a|",     "(a)(b)", "a(b|c)d", "(?<x>a)",  "\\w+", "\\bA",    "^a",       "[a[b]]",
      "[a&&b]", "[]",  "[z-a]", "a{3,1}", "a{",     "[ab",     "\\p{Han}", "\\pL", "(?!abc)", "x(?!\\S",  "a)",
      "(?i:é)", "\\",  "\xFF",  "()",     "a{0}",   "(a|b$)",  "$",        "a$b",  "(a+)?",   "a{99999}", "[a-\\s]"};
  for (const char* source : unknown) {
    try {
      Pattern::regex(source);
      ADD_FAILURE() << source << " was taken";
    } catch (const StartError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(source) + "'"));
    }
  }
}

TEST(Pattern, RefusesMoreAlternativesOrItemsThanItHasRoomFor) {
  std::string alternatives = "a", items = "a";
  for (std::size_t i = 1; i < Pattern::kMaxAlternatives; ++i) alternatives += "|a";
  for (std::size_t i = 1; i < Pattern::kMaxItems; ++i) items += "a";
  EXPECT_NO_THROW(Pattern::regex(alternatives));
  EXPECT_NO_THROW(Pattern::regex(items));
  EXPECT_THROW(Pattern::regex(alternatives + "|a"), StartError);
  EXPECT_THROW(Pattern::regex(items + "a"), StartError);
}

TEST(Pattern, RefusesMoreEndingsThanItHasRoomFor) {
  std::string endings = "a";
  for (std::size_t i = 2; i < Pattern::kMaxAlternatives; ++i) endings += "|a";
  EXPECT_NO_THROW(Pattern::regex("x(" + endings + ")?"));
  EXPECT_NO_THROW(Pattern::regex("x(" + endings + "|a)?"));
  EXPECT_THROW(Pattern::regex("x(" + endings + "|a|a)?"), StartError);
  const std::string items(Pattern::kMaxItems - 1, 'a');
  EXPECT_NO_THROW(Pattern::regex("x(" + items + ")?"));
  EXPECT_NO_THROW(Pattern::regex("x(" + items + "a)?"));
  EXPECT_THROW(Pattern::regex("x(" + items + "aa)?"), StartError);
}

// Each different character would be compiled to 8 KiB; the byte named is where reading ended.
TEST(Pattern, RefusesALongPatternBeforeAllOfItIsCompiled) {
  std::string row, choices;
  for (char32_t code = 0x4E00; code < 0x4E00 + 20'000; ++code) {
    append_utf8(row, code);
    choices += "|";
    append_utf8(choices, code);
  }
  const auto refused_at = [](const std::string& source) -> std::size_t {
    try {
      Pattern::regex(source);
    } catch (const StartError& error) {
      const std::string_view text = error.what();
      return std::stoul(std::string(text.substr(text.rfind("at byte ") + 8)));
    }
    return std::string::npos;
  };
  for (const std::string& source : {row, "x" + choices, "(" + row + ")", "x(x" + choices + ")?"}) {
    EXPECT_LT(refused_at(source), 200u) << source.substr(0, 8);
  }
}

// A search that scanned the run again from each of its blanks would take minutes here.
TEST(Pattern, DoesNotScanARunAgainThatLedNowhere) {
  const std::string blanks(4'000'000, ' ');
  EXPECT_THAT(matches(R"(\s+$|\s+\n)", blanks + "x"), IsEmpty());
}

}  // namespace
}  // namespace quire::text
