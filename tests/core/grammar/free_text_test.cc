#include "core/grammar/free_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/rules_match.h"

namespace quire::grammar::free_text_test {
namespace {

// Every text of up to `length` bytes over `letters`.
std::vector<std::string> all_texts(std::string_view letters, std::size_t length) {
  std::vector<std::string> all{""};
  for (std::size_t begin = 0; length > 0; --length) {
    const std::size_t end = all.size();
    for (; begin < end; ++begin) {
      for (const char c : letters) all.push_back(all[begin] + c);
    }
  }
  return all;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

TEST(FreeText, WithoutMarksIsEveryTextThatHoldsNone) {
  Rules rules;
  const std::string_view marks[] = {"<ab", "bc"};
  const Expr text = text_without(rules, marks);
  for (const std::string& one : all_texts("<abc", 6)) {
    EXPECT_EQ(RulesMatch(rules, one).whole(text), !holds(one, "<ab") && !holds(one, "bc")) << one;
  }
}

TEST(FreeText, WithoutManyMarksIsNoLargerThanTheMarks) {
  Rules rules;
  std::vector<std::string> names;
  for (int i = 0; i < 16; ++i) names.push_back("<" + std::to_string(i) + std::string(20, static_cast<char>('a' + i)));
  const std::vector<std::string_view> marks(names.begin(), names.end());
  const Expr text = text_without(rules, marks);
  EXPECT_TRUE(RulesMatch(rules, "a <12").whole(text));
  EXPECT_FALSE(RulesMatch(rules, "a " + names[12]).whole(text));
}

TEST(FreeText, MayLackAMarkThatBeginsAsItEnds) {
  Rules rules;
  const std::string_view mark = "aba";
  const Expr text = text_without(rules, {&mark, 1});
  for (const std::string& one : all_texts("abc", 6)) EXPECT_EQ(RulesMatch(rules, one).whole(text), !holds(one, mark));
}

TEST(FreeText, MayBeKeptFromABeginning) {
  Rules rules;
  const std::string_view mark = "ab";
  const auto begins = [](Rules& own) {
    const Expr ways[] = {own.bytes("{"), own.bytes("ba")};
    return own.choice(ways);
  };
  const Expr text = text_without(rules, {&mark, 1}, begins);
  for (const std::string& one : all_texts("ab{ \n", 5)) {
    const std::size_t first = one.find_first_not_of(" \n");
    const std::string rest = first != one.npos ? one.substr(first) : "";
    const bool begins_so = rest.starts_with("{") || rest.starts_with("ba");
    EXPECT_EQ(RulesMatch(rules, one).whole(text), !begins_so && !holds(one, "ab")) << one;
  }
}

TEST(FreeText, UntilAMarkEndsAtTheFirstOne) {
  Rules rules;
  const Expr text = text_until(rules, "<ab");
  for (const std::string& one : all_texts("<ab", 8)) {
    const bool ends_there = one.find("<ab") + 3 == one.size() && holds(one, "<ab");
    EXPECT_EQ(RulesMatch(rules, one).whole(text), ends_there) << one;
  }
}

TEST(FreeText, IsWellFormed) {
  Rules rules;
  const std::string_view mark = "<a";
  const Expr text = text_without(rules, {&mark, 1});
  EXPECT_TRUE(RulesMatch(rules, "na\xC3\xAFve \xF0\x9F\x99\x82").whole(text));
  for (const std::string bad : {"\xC3", "\xFF", "\xED\xA0\x80"}) EXPECT_FALSE(RulesMatch(rules, bad).whole(text));
}

TEST(FreeTextDeathTest, TakesNoMarkThatBeginsAsItEnds) {
  Rules rules;
  EXPECT_DEATH(text_until(rules, "aba"), "");
  EXPECT_DEATH(text_until(rules, ""), "");
  EXPECT_DEATH(text_until(rules, std::string(64, 'a') + "b"), "");
}

}  // namespace
}  // namespace quire::grammar::free_text_test
