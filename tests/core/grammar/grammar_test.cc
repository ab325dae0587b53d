#include "core/grammar/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/grammar/automaton/automaton.h"
#include "tests/core/grammar/matching.h"
#include "tests/support/patient.h"

namespace quire::grammar::grammar_test {
namespace {

using testing::byte_vocabulary;
using ::testing::HasSubstr;

std::string error_of(const Rules& rules, const CompileLimits& limits = quire::testing::kPatient) {
  const auto grammar = Grammar::compile(rules, byte_vocabulary(), limits);
  if (grammar) return "compiles";
  EXPECT_EQ(grammar.error().code, limits.max_time.count() > 0 ? Code::kInvalidArgument : Code::kTimeout);
  EXPECT_EQ(grammar.error().param, "");
  return grammar.error().message;
}

std::string error_of(std::string_view text, const CompileLimits& limits = quire::testing::kPatient) {
  Rules rules;
  EXPECT_TRUE(ebnf(rules, text).ok());
  return error_of(rules, limits);
}

TEST(Grammar, RefusesRulesThatAreNotThere) {
  EXPECT_EQ(error_of(Rules()), "the grammar has no rules");
  Rules rules;
  rules.define(rules.declare("root"), rules.use(rules.declare("item")));
  EXPECT_EQ(error_of(rules), "rule 'item' is not defined");
}

TEST(Grammar, RefusesLeftRecursionByName) {  // where left_recursion.h leaves it
  EXPECT_EQ(error_of(R"(root ::= root root "a" | "")"), "rule 'root' can begin with itself (left recursion)");
  EXPECT_EQ(error_of("root ::= \"x\" sum\nsum ::= (sum? \"a\"?)* \"b\""),
            "rule 'sum' can begin with itself (left recursion)");
  EXPECT_EQ(error_of("root ::= a\na ::= \"\" a"), "no text matches the grammar");
  EXPECT_EQ(error_of(R"(root ::= "a" root | "a")"), "compiles");
}

TEST(Grammar, RefusesWhatNoTextMatches) {
  EXPECT_EQ(error_of("root ::= \"a\" root"), "no text matches the grammar");
  EXPECT_EQ(error_of("root ::= []"), "no text matches the grammar");
}

TEST(Grammar, DropsWaysThatLeadNowhere) {
  const auto grammar =
      testing::compile_ebnf("root ::= \"a\" (lost | \"b\" | \"c\" [] | [] \"d\")\nlost ::= \"x\" lost");
  EXPECT_TRUE(testing::matches(grammar, "ab"));
  Matcher matcher(grammar);
  ASSERT_TRUE(testing::takes(matcher, "a"));
  EXPECT_THAT(testing::tokens_of(testing::mask_of(matcher, *grammar)), ::testing::ElementsAre('b'));
}

TEST(Grammar, TakesAsManyStatesAsTheLimitAllowsAndNoMore) {
  // 100 bytes are 101 states.
  const std::string text = "root ::= \"" + std::string(100, 'a') + "\"";
  EXPECT_EQ(error_of(text, {.max_states = 102}), "compiles");
  EXPECT_EQ(error_of(text, {.max_states = 101}), "compiles");
  EXPECT_EQ(error_of(text, {.max_states = 100}),
            "the grammar needs more than 100 states: simplify it, or repeat less in it");
}

TEST(Grammar, RefusesWhatWouldBeTooLarge) {
  Rules rules;
  const RuleId root = rules.declare("root");
  rules.define(root, rules.repeat(rules.bytes("a"), 0, 150'000));
  EXPECT_THAT(error_of(rules), HasSubstr("needs more than 200000 states"));
  EXPECT_THAT(error_of(R"(root ::= [ab]* "a" [ab]{30})"), HasSubstr("needs more than 200000 states"));
}

TEST(Grammar, RefusesWhatTakesTooLong) {
  EXPECT_THAT(error_of(R"(root ::= [ab]* "a" [ab]{16})", {.max_time = std::chrono::milliseconds(0)}),
              HasSubstr("takes longer than 0 ms to compile"));
}

TEST(Grammar, ManyRulesThatUseEachOtherTakeLittleTime) {
  std::string text = "root ::= r0";
  for (int i = 0; i < 1500; ++i)
    text += "\nr" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + " | \"b\"";
  text += "\nr1500 ::= \"c\"";
  const auto grammar = testing::compile_ebnf(text);
  EXPECT_TRUE(testing::matches(grammar, std::string(1500, 'a') + "c"));
  EXPECT_TRUE(testing::matches(grammar, "aaab"));
  EXPECT_FALSE(testing::matches(grammar, "aaac"));
}

TEST(Grammar, RefusesExpressionsNestedTooDeep) {
  const auto nested = [](int depth) {
    Rules rules;
    const RuleId root = rules.declare("root");
    Expr e = rules.bytes("a");
    for (int i = 1; i < depth; ++i) e = rules.sequence({&e, 1});
    rules.define(root, e);
    return error_of(rules);
  };
  EXPECT_EQ(nested(999), "compiles");
  EXPECT_EQ(nested(1000), "compiles");
  EXPECT_EQ(nested(1001), "rule 'root' is nested more than 1000 deep");
}

TEST(Grammar, RefusesToRepeatWhatMayBeEmptyTooOften) {
  EXPECT_EQ(error_of(R"(root ::= ("a"?){0,255} "b")"), "compiles");
  EXPECT_EQ(error_of(R"(root ::= ("a"?){256} "b")"), "compiles");
  EXPECT_EQ(error_of(R"(root ::= ("a"?){2,257} "b")"),
            "rule 'root' repeats a part that may be empty more than 256 times");
  EXPECT_EQ(error_of(R"(root ::= ("a"?)* "b")"), "compiles");
}

TEST(Grammar, ALongRepetitionStaysSmall) {
  const auto grammar =
      testing::compile_ebnf(R"(root ::= "<" ([^"\\] | "\\" ["\\/bfnrt] | "\\u" [0-9a-f]{4}){2,10000} ">")");
  EXPECT_LT(grammar->automaton().size(), 10'100u);
  EXPECT_FALSE(testing::matches(grammar, "<a>"));
  EXPECT_TRUE(testing::matches(grammar, "<aé>"));
  std::string text = "<";
  for (int i = 0; i < 2500; ++i) text += "a\\n\\u00e9é";
  EXPECT_TRUE(testing::matches(grammar, text + ">"));
  EXPECT_FALSE(testing::matches(grammar, text + "a>"));
}

TEST(Grammar, ACallAtTheEndOfARuleGrowsNoStack) {
  const auto grammar = testing::compile_ebnf("root ::= [ab] \"123456789\" root | \".\"");
  for (const Automaton::Call& call : grammar->automaton().calls) EXPECT_EQ(call.back, Automaton::kNone);
  EXPECT_TRUE(testing::matches(grammar, "a123456789b123456789."));
}

TEST(Grammar, LargeEnumerationsCompile) {
  Rules rules;
  const RuleId root = rules.declare("root");
  std::vector<Expr> ways;
  for (int i = 0; i < 5000; ++i) ways.push_back(rules.bytes("value " + std::to_string(i * 7919)));
  rules.define(root, rules.choice(ways));
  const auto grammar = Grammar::compile(rules, byte_vocabulary(), quire::testing::kPatient);
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(testing::matches(*grammar, "value 7919"));
  EXPECT_FALSE(testing::matches(*grammar, "value 7918"));
}

}  // namespace
}  // namespace quire::grammar::grammar_test
