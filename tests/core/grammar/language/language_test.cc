#include "core/grammar/language/language.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/rules_match.h"

namespace quire::grammar {
namespace {

StateBudget plenty() { return StateBudget(100'000); }

// Texts over a, b, c, up to five of them.
std::vector<std::string> small_texts() {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; texts[i].size() < 5; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

Expr random_expr(Rules& rules, std::mt19937& random, int depth) {
  const auto upto = [&](unsigned n) { return static_cast<std::uint32_t>(random() % (n + 1)); };
  if (depth == 0 || upto(3) == 0) {
    if (upto(1) == 0) return rules.bytes(std::string(upto(2), static_cast<char>('a' + upto(2))));
    ByteSet set;
    for (const char c : {'a', 'b', 'c'}) set[static_cast<unsigned char>(c)] = upto(1) == 0;
    return rules.byte_set(set);
  }
  std::vector<Expr> parts;
  for (std::uint32_t i = 0; i < 1 + upto(2); ++i) parts.push_back(random_expr(rules, random, depth - 1));
  switch (upto(2)) {
    case 0:
      return rules.sequence(parts);
    case 1:
      return rules.choice(parts);
    default: {
      const std::uint32_t least = upto(2);
      return rules.repeat(parts[0], least, upto(1) == 0 ? kUnbounded : least + upto(2));
    }
  }
}

TEST(Language, HoldsWhatItsExpressionMatchesAndCombinesAsSetsDo) {
  const auto texts = small_texts();
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Rules rules;
    const Expr a = random_expr(rules, random, 3);
    const Expr b = random_expr(rules, random, 3);
    StateBudget budget = plenty();
    const Language x = Language::of(rules, a, budget);
    const Language y = Language::of(rules, b, budget);
    const Language both = x.both(y, budget);
    const Language either = x.either(y, budget);
    const Language without = x.without(y, budget);
    const Language sized = x.with_length(1, 3, budget);
    const Language longer = x.with_length(2, kUnbounded, budget);
    bool any = false;
    for (const std::string& text : texts) {
      const bool in_x = RulesMatch(rules, text).whole(a);
      const bool in_y = RulesMatch(rules, text).whole(b);
      any |= in_x && in_y;
      ASSERT_EQ(x.contains(text), in_x) << text;
      ASSERT_EQ(both.contains(text), in_x && in_y) << text;
      ASSERT_EQ(either.contains(text), in_x || in_y) << text;
      ASSERT_EQ(without.contains(text), in_x && !in_y) << text;
      ASSERT_EQ(sized.contains(text), in_x && text.size() >= 1 && text.size() <= 3) << text;
      ASSERT_EQ(longer.contains(text), in_x && text.size() >= 2) << text;
    }
    if (any) {
      EXPECT_FALSE(both.empty());
    }
  }
}

TEST(Language, IsWrittenAsRulesThatMatchTheSame) {
  const auto texts = small_texts();
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Rules rules;
    StateBudget budget = plenty();
    const Language language = Language::of(rules, random_expr(rules, random, 3), budget);
    Rules written;
    const Expr plain = language.write(written);
    const Expr json = language.write_json_string(written);
    for (const std::string& text : texts) {
      ASSERT_EQ(RulesMatch(written, text).whole(plain), language.contains(text)) << text;
      ASSERT_EQ(RulesMatch(written, '"' + text + '"').whole(json), language.contains(text)) << text;
    }
  }
}

TEST(Language, IsEscapedInAJsonStringWhereItHasToBe) {
  Rules rules;
  StateBudget budget = plenty();
  const Language any = Language::of_utf8(budget);
  const Expr json = any.write_json_string(rules);
  for (const std::string good : {R"("")", R"("a\"b\\c\n\t\u0001\u001f")", "\"\xC3\xA9\xF0\x9F\x98\x80/\x7F\""}) {
    EXPECT_TRUE(RulesMatch(rules, good).whole(json)) << good;
  }
  for (const std::string bad : {"\"", "\"\n\"", R"("\q")", R"("\u0041")", R"("\ud800")", "\"\x80\"", "\"\xED\xA0\x80\"",
                                R"("a"b")", "\"\xC3\""}) {
    EXPECT_FALSE(RulesMatch(rules, bad).whole(json)) << bad;
  }
}

TEST(Language, CountsCodePointsNotBytes) {
  Rules rules;
  StateBudget budget = plenty();
  const Language three = Language::of_utf8(budget).with_length(3, 3, budget);
  EXPECT_TRUE(three.contains("\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80"));
  EXPECT_FALSE(three.contains("\xC3\xA9\xE4\xBD\xA0"));
  EXPECT_FALSE(three.contains("abcd"));
  EXPECT_FALSE(three.contains("ab\xC3"));
}

TEST(Language, KnowsMultiples) {
  for (const std::uint32_t divisor : {1u, 2u, 3u, 7u, 10u, 12u, 100u}) {
    StateBudget budget = plenty();
    const Language multiples = Language::multiples(divisor, budget);
    for (int i = -300; i <= 300; ++i) {
      EXPECT_EQ(multiples.contains(std::to_string(i)), i % static_cast<int>(divisor) == 0) << i << " " << divisor;
    }
  }
}

TEST(Language, StopsWhereItsBudgetEnds) {
  Rules rules;
  const Expr expr = rules.repeat(rules.bytes("a"), 100, 100);
  StateBudget all = plenty();
  (void)Language::of(rules, expr, all);
  std::uint32_t needed = 0;
  for (bool enough = false; !enough; needed += enough ? 0 : 1) {
    try {
      StateBudget budget(needed);
      (void)Language::of(rules, expr, budget);
      enough = true;
    } catch (const LanguageTooLarge& error) {
      EXPECT_EQ(error.limit, needed);
    }
  }
  EXPECT_GT(needed, 100u);
  StateBudget budget(needed);
  EXPECT_NO_THROW((void)Language::of(rules, expr, budget));
}

}  // namespace
}  // namespace quire::grammar
