#include "core/grammar/text/ebnf.h"

#include <gtest/gtest.h>

#include <string>

#include "core/grammar/text/grammar_text.h"
#include "tests/core/grammar/matching.h"

namespace quire::grammar::ebnf_test {
namespace {

using testing::compile_ebnf;
using testing::matches;

std::string error_of(std::string_view text) {
  Rules rules;
  const auto root = ebnf(rules, text);
  if (root) return "no error";
  EXPECT_EQ(root.error().code, Code::kInvalidArgument);
  return root.error().message;
}

TEST(Ebnf, ReadsWhatLlamaCppWrites) {
  const auto grammar = compile_ebnf(R"x(
# Arithmetic, in the manner of llama.cpp's examples.
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws   # names
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)x");
  EXPECT_TRUE(matches(grammar, "x1 +(3*y )= 7\n"));
  EXPECT_TRUE(matches(grammar, "a=b\nc=d\n"));
  EXPECT_FALSE(matches(grammar, "a=b"));
  EXPECT_FALSE(matches(grammar, "a b=c\n"));
}

TEST(Ebnf, AlternativesMayStandOnLinesOfTheirOwn) {
  const auto grammar = compile_ebnf("root ::=\n  \"a\"\n  | # or\n  b \"c\"\n  | \"d\"\r\n\r\nb ::= \"b\"");
  EXPECT_TRUE(matches(grammar, "a"));
  EXPECT_TRUE(matches(grammar, "bc"));
  EXPECT_TRUE(matches(grammar, "d"));
  EXPECT_FALSE(matches(grammar, "b"));
}

TEST(Ebnf, KnowsEscapesClassesAndTheDot) {
  const auto grammar = compile_ebnf(R"(root ::= "\x41\u00e9\U0001F642\n\t\r\"\\\[" [\]\-^\x30-\x32] [^a\n] .)");
  EXPECT_TRUE(matches(grammar, "Aé🙂\n\t\r\"\\[]bx"));
  EXPECT_TRUE(matches(grammar, "Aé🙂\n\t\r\"\\[-é\n"));
  EXPECT_TRUE(matches(grammar, "Aé🙂\n\t\r\"\\[^🙂é"));
  EXPECT_TRUE(matches(grammar, "Aé🙂\n\t\r\"\\[1😀😀"));
  EXPECT_FALSE(matches(grammar, "Aé🙂\n\t\r\"\\[3bx"));
  EXPECT_FALSE(matches(grammar, "Aé🙂\n\t\r\"\\[]ax"));
  EXPECT_FALSE(matches(grammar, "Aé🙂\n\t\r\"\\[]b\xFF"));
}

TEST(Ebnf, RepeatsAsOftenAsWritten) {
  const auto times = [](const std::string& count, std::size_t n) {
    return matches(compile_ebnf("root ::= \"<\" \"ab\"" + count + " \">\""), [&] {
      std::string text = "<";
      for (std::size_t i = 0; i < n; ++i) text += "ab";
      return text + ">";
    }());
  };
  const struct {
    const char* count;
    const char* yes;  // for 0, 1, 2, 3, 4 times
  } cases[] = {{"*", "yyyyy"},     {"+", "nyyyy"},    {"?", "yynnn"},         {"{2}", "nnynn"}, {"{2,}", "nnyyy"},
               {"{1,3}", "nyyyn"}, {"{,2}", "yyynn"}, {"{ 1 , 2 }", "nyynn"}, {"{0}", "ynnnn"}, {" ? *", "yyyyy"}};
  for (const auto& [count, yes] : cases) {
    for (std::size_t n = 0; n < 5; ++n) EXPECT_EQ(times(count, n), yes[n] == 'y') << count << " " << n;
  }
}

TEST(Ebnf, AlternativesAndGroupsMayBeEmpty) {
  const auto grammar = compile_ebnf(R"(root ::= "a" () ("b" | ) "" | )");
  EXPECT_TRUE(matches(grammar, ""));
  EXPECT_TRUE(matches(grammar, "a"));
  EXPECT_TRUE(matches(grammar, "ab"));
  EXPECT_FALSE(matches(grammar, "b"));
}

TEST(Ebnf, TheRootMayStandAnywhere) {
  Rules rules;
  const auto root = ebnf(rules, "a ::= \"x\"\nroot ::= a");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(*root, 0u);
  EXPECT_EQ(rules.rules()[0].name, "root");
}

TEST(Ebnf, SaysWhereItDoesNotUnderstand) {
  EXPECT_EQ(error_of(""), "the grammar has no rule 'root'");
  EXPECT_EQ(error_of("start ::= \"a\""), "the grammar has no rule 'root'");
  EXPECT_EQ(error_of("root ::= \"a\"\nitem ::= thing |\n  other\nother ::= \"o\""),
            "grammar, line 2, column 10: rule 'thing' is not defined");
  EXPECT_EQ(error_of("root ::= \"a\"\nroot ::= \"b\""), "grammar, line 2, column 1: this rule is defined already");
  EXPECT_EQ(error_of("root = \"a\""), "grammar, line 1, column 1: expected a rule: name ::= ...");
  EXPECT_EQ(error_of("root ::= \"a"), "grammar, line 1, column 10: the literal is not closed");
  EXPECT_EQ(error_of("root ::= [a"), "grammar, line 1, column 10: '[' is not closed");
  EXPECT_EQ(error_of("root ::= (\"a\""), "grammar, line 1, column 10: '(' is not closed");
  EXPECT_EQ(error_of("root ::= \"a\")"), "grammar, line 1, column 13: ')' has no matching '('");
  EXPECT_EQ(error_of("root ::= * \"a\""),
            "grammar, line 1, column 10: expected a literal, a class, a rule's name or a group");
  EXPECT_EQ(error_of("root ::= \"é\" \n # x\n\t[z-a]"), "grammar, line 3, column 3: the range is out of order");
  EXPECT_EQ(error_of(R"(root ::= "\q")"), "grammar, line 1, column 11: this escape is not supported");
  EXPECT_EQ(error_of(R"(root ::= "\x4")"), "grammar, line 1, column 11: expected \\xHH, \\uHHHH or \\UHHHHHHHH");
  EXPECT_EQ(error_of(R"(root ::= "\ud800")"), "grammar, line 1, column 11: this is not a character");
  EXPECT_EQ(error_of(R"(root ::= "a"{3,2})"), "grammar, line 1, column 13: the numbers are out of order");
  EXPECT_EQ(error_of(R"(root ::= "a"{x})"), "grammar, line 1, column 13: expected {m}, {m,} or {m,n}");
  EXPECT_EQ(error_of("root ::= \"\xFF\""), "the grammar is not UTF-8");
  EXPECT_EQ(error_of("root ::= \"a\\"), "grammar, line 1, column 12: '\\' is the last character");
}

TEST(Ebnf, KeepsItsLimits) {
  const auto padded = [](std::size_t bytes) {
    std::string text = "root ::= \"a\" #";
    return text + std::string(bytes - text.size(), 'x');
  };
  EXPECT_EQ(error_of(padded(kMaxGrammarBytes - 1)), "no error");
  EXPECT_EQ(error_of(padded(kMaxGrammarBytes)), "no error");
  EXPECT_EQ(error_of(padded(kMaxGrammarBytes + 1)), "the grammar has more than 65536 bytes");
  const auto nested = [](std::size_t depth) {
    return "root ::= " + std::string(depth, '(') + "\"a\"" + std::string(depth, ')');
  };
  EXPECT_EQ(error_of(nested(kMaxGrammarDepth - 1)), "no error");
  EXPECT_EQ(error_of(nested(kMaxGrammarDepth)), "no error");
  EXPECT_EQ(error_of(nested(kMaxGrammarDepth + 1)), "grammar, line 1, column 74: nested more than 64 deep");
  const auto counted = [](std::uint64_t count) { return "root ::= [a]{" + std::to_string(count) + "}"; };
  EXPECT_EQ(error_of(counted(kMaxGrammarCount - 1)), "no error");
  EXPECT_EQ(error_of(counted(kMaxGrammarCount)), "no error");
  EXPECT_EQ(error_of(counted(kMaxGrammarCount + 1)), "grammar, line 1, column 13: repeats more than 10000 times");
  EXPECT_EQ(error_of(counted(1ULL << 60)), "grammar, line 1, column 13: repeats more than 10000 times");
}

}  // namespace
}  // namespace quire::grammar::ebnf_test
