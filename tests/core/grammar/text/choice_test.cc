#include "core/grammar/text/choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/rules_match.h"

namespace quire::grammar::choice_test {
namespace {

TEST(Choice, MatchesItsTextsAndNoOthers) {
  Rules rules;
  ASSERT_TRUE(choice(rules, std::vector<std::string>{"yes", "yes, but", "n\xC3\xB3"}));
  for (const std::string good : {"yes", "yes, but", "n\xC3\xB3"}) EXPECT_TRUE(RulesMatch(rules, good).whole());
  for (const std::string bad : {"", "ye", "yes,", "no", "n\xC3"}) EXPECT_FALSE(RulesMatch(rules, bad).whole());
}

TEST(Choice, RefusesNoTextsAndEmptyOnes) {
  Rules rules;
  EXPECT_EQ(choice(rules, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(choice(rules, std::vector<std::string>{"a", ""}).error().message, "choice 1 is empty");
}

TEST(Choice, HasItsLimits) {
  for (const std::size_t n : {kMaxChoices - 1, kMaxChoices, kMaxChoices + 1}) {
    Rules rules;
    EXPECT_EQ(choice(rules, std::vector<std::string>(n, "a")).ok(), n <= kMaxChoices) << n;
  }
  for (const std::size_t n : {kMaxChoiceBytes - 1, kMaxChoiceBytes, kMaxChoiceBytes + 1}) {
    Rules rules;
    EXPECT_EQ(choice(rules, std::vector<std::string>{std::string(n, 'a')}).ok(), n <= kMaxChoiceBytes) << n;
  }
}

}  // namespace
}  // namespace quire::grammar::choice_test
