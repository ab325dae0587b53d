#include "core/grammar/text/left_recursion.h"

#include <gtest/gtest.h>

#include "tests/core/grammar/brute_force.h"
#include "tests/core/grammar/matching.h"
#include "tests/core/grammar/random_grammar.h"

namespace quire::grammar::left_recursion_test {
namespace {

using testing::compile_ebnf;
using testing::matches;

TEST(LeftRecursion, IsReadFromLeftToRightAllTheSame) {
  const auto sum = compile_ebnf(R"x(root ::= root "+" term | root "-" term | term
term ::= term "*" atom | atom
atom ::= "a" | "(" root ")")x");
  for (const char* text : {"a", "a+a", "a-a*a+a", "(a+a)*a", "((a))"}) EXPECT_TRUE(matches(sum, text)) << text;
  for (const char* text : {"", "+a", "a+", "a++a", "(a", "a*"}) EXPECT_FALSE(matches(sum, text)) << text;
}

TEST(LeftRecursion, ThroughOtherRulesAndBehindWhatMayBeEmptyIsRead) {
  const auto calls = compile_ebnf(R"x(root ::= call | member | "f"
call ::= root "()"
member ::= root ".x" | call "!")x");
  for (const char* text : {"f", "f()", "f().x()", "f.x.x", "f()!()", "f()!.x"})
    EXPECT_TRUE(matches(calls, text)) << text;
  for (const char* text : {"()", "f!", "f.x!", "f(", ""}) EXPECT_FALSE(matches(calls, text)) << text;
  const auto empty = compile_ebnf("root ::= space root \"a\" | \"b\"\nspace ::= \" \"*");
  for (const char* text : {"b", "baa", " ba", "   baa"}) EXPECT_TRUE(matches(empty, text)) << text;
  for (const char* text : {" b", "  ba b", "a"}) EXPECT_FALSE(matches(empty, text)) << text;
}

TEST(LeftRecursion, OfLongAnswersNeedsNoDepth) {
  const auto calls =
      compile_ebnf("root ::= call | member | \"f\"\ncall ::= root \"()\"\nmember ::= root \".x\" | call \"!\"");
  std::string text = "f";
  for (int i = 0; i < 5000; ++i) text += i % 3 == 0 ? "()" : i % 3 == 1 ? "!" : ".x";
  EXPECT_TRUE(matches(calls, text));
  EXPECT_FALSE(matches(calls, text + "!"));
}

TEST(LeftRecursion, OfManyRulesInOneCircleIsReadUpToALimit) {
  const auto circle = [](int n) {
    std::string text = "root ::= r0\n";
    for (int i = 0; i < n; ++i) {
      text += "r" + std::to_string(i) + " ::= r" + std::to_string((i + 1) % n) + " \"a\" | \"b\"\n";
    }
    Rules rules;
    EXPECT_TRUE(ebnf(rules, text).ok());
    return Grammar::compile(rules, testing::byte_vocabulary(), quire::testing::kPatient);
  };
  for (const int n : {1, 2, 23, 24}) {
    const auto grammar = circle(n);
    ASSERT_TRUE(grammar.ok()) << n;
    EXPECT_TRUE(matches(*grammar, "b" + std::string(100, 'a')));
  }
  const auto too_many = circle(25);
  ASSERT_FALSE(too_many.ok());
  EXPECT_NE(too_many.error().message.find("left recursion"), std::string::npos);
}

TEST(LeftRecursion, IsRemovedFromRandomRulesWithoutAnyOtherText) {
  std::uint32_t removed = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    testing::RandomGrammar random(seed);
    const Rules before = random.rules();
    const auto refused = Grammar::compile(before, testing::byte_vocabulary(), quire::testing::kPatient);
    if (refused || refused.error().message.find("left recursion") == std::string::npos) continue;
    Rules after = before;
    remove_left_recursion(after, 0);
    const auto compiled = Grammar::compile(after, testing::byte_vocabulary(), quire::testing::kPatient);
    if (!compiled) {
      const std::string& why = compiled.error().message;
      EXPECT_TRUE(why.find("left recursion") != why.npos || why.find("no text matches") != why.npos) << why;
      continue;
    }
    ++removed;
    for (int i = 0; i < 20; ++i) {
      const std::string text = random.text(6);
      EXPECT_EQ(testing::BruteForce(after, text).matches(), testing::BruteForce(before, text).matches())
          << seed << " " << text;
    }
  }
  EXPECT_GT(removed, 100u);
}

}  // namespace
}  // namespace quire::grammar::left_recursion_test
