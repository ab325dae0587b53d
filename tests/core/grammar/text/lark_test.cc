#include "core/grammar/text/lark.h"

#include <gtest/gtest.h>

#include <string>

#include "core/grammar/text/grammar_text.h"
#include "core/grammar/text/lark_common.h"
#include "tests/core/grammar/matching.h"

namespace quire::grammar::lark_test {
namespace {

using testing::matches;

std::shared_ptr<const Grammar> compiled(std::string_view text) {
  Rules rules;
  const auto root = lark(rules, text);
  EXPECT_TRUE(root.ok()) << (root.ok() ? "" : root.error().message);
  auto grammar = Grammar::compile(rules, testing::byte_vocabulary(), quire::testing::kPatient);
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  return *grammar;
}
std::string error_of(std::string_view text) {
  Rules rules;
  const auto root = lark(rules, text);
  if (root) return "no error";
  EXPECT_EQ(root.error().code, Code::kInvalidArgument);
  return root.error().message;
}

// What lark_cases.py shows beside lark itself is not shown again here.

TEST(Lark, IsKnownByWhatIsNoEbnfInIt) {
  EXPECT_TRUE(is_lark("start: \"a\""));
  EXPECT_TRUE(is_lark("start: \"a\"  // x ::= y\nb: \"c\" # ::="));
  EXPECT_TRUE(is_lark(""));
  EXPECT_FALSE(is_lark("root ::= \"a\""));
  EXPECT_FALSE(is_lark("# a comment\r\n  root::=\"a\"\r\n"));
}

TEST(Lark, TakesTerminalsThatMayBeEmpty) {  // lark itself refuses them; grammars of patches have them
  const auto patch = compiled("start: line+\nline: (\"+\" | \"-\") /(.*)/ LF\n%import common.LF");
  EXPECT_TRUE(matches(patch, "+a b\n-\n"));
  EXPECT_FALSE(matches(patch, "a\n"));
}

TEST(Lark, IgnoresTextAroundTerminalsAndNotInThem) {
  const auto grammar = compiled("start: A \"b\"?\nA: \"x\" \"y\"\n%ignore \" \"\n%ignore /#[a-z]*;/");
  for (const char* text : {"xy", " xy", "xy ", "xy b", "  xy #c;# ;  b  "}) {
    EXPECT_EQ(matches(grammar, text), std::string(text).find("# ;") == std::string::npos) << text;
  }
  for (const char* text : {"x y", "", " ", "xyb#c"}) EXPECT_FALSE(matches(grammar, text)) << text;
}

TEST(Lark, HasTheTerminalsOfCommon) {
  const std::pair<const char*, std::pair<std::vector<std::string>, std::vector<std::string>>> terminals[] = {
      {"SIGNED_FLOAT", {{"1.", "-.5", "+1e9", "2.5E-3"}, {"1", "e5", "."}}},
      {"NUMBER", {{"1", "1.5", ".5e3"}, {"+1", ""}}},
      {"ESCAPED_STRING", {{R"("")", R"("a\"b")", R"("\\")"}, {R"(")", R"("a"b")", "\"\n\""}}},
      {"C_COMMENT", {{"/**/", "/* a * b \n **/"}, {"/* */ */", "/*/"}}},
      {"CNAME", {{"_a1"}, {"1a"}}},
      {"NEWLINE", {{"\n", "\r\n\n"}, {"\r", ""}}},
  };
  for (const auto& [name, texts] : terminals) {
    const auto grammar = compiled("start: X\n%import common." + std::string(name) + " -> X");
    for (const std::string& text : texts.first) EXPECT_TRUE(matches(grammar, text)) << name << " " << text;
    for (const std::string& text : texts.second) EXPECT_FALSE(matches(grammar, text)) << name << " " << text;
  }
  for (const char* name :
       {"DIGIT", "HEXDIGIT", "INT", "SIGNED_INT", "DECIMAL", "FLOAT", "SIGNED_NUMBER", "LCASE_LETTER", "UCASE_LETTER",
        "LETTER", "WORD", "WS_INLINE", "WS", "CR", "LF", "SH_COMMENT", "CPP_COMMENT", "SQL_COMMENT", "_EXP"}) {
    compiled("start: " + std::string(name) + "\n%import common (" + name + ")");
  }
}

TEST(Lark, RegularExpressionsAreThoseOfPython) {
  const auto grammar = compiled(R"x(start: /a.c/s | /[^x]y/i | /(?i:q)r/ | /[]z]{,2}!/ | /a b # c
  d/x | /\U0001F642/)x");
  for (const char* text : {"a\nc", "zY", "AY", "Qr", "qr", "!", "]z!", "abd", "🙂"})
    EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* text : {"xy", "XY", "qR", "]]]!", "a b", "ac"}) EXPECT_FALSE(matches(grammar, text)) << text;
}

TEST(Lark, SaysWhereAndWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "the grammar has no rule 'start'"},
      {"a: \"b\"", "the grammar has no rule 'start'"},
      {"start: b", "line 1, column 8: 'b' is not defined"},
      {"start: \"a\"\nstart: \"b\"", "line 2, column 1: 'start' is defined already"},
      {"start: A\nA: b\nb: \"c\"", "line 2, column 4: a terminal cannot contain a rule"},
      {"start: A\nA: \"x\" B?\nB: A", "terminal 'A' contains itself: make it a rule"},
      {"start: \"a", "line 1, column 8: the literal is not closed"},
      {"start: 'a'", "line 1, column 8: a literal must be in double quotes"},
      {"start: /a", "line 1, column 8: the regular expression is not closed"},
      {"start: /a/g", "line 1, column 11: this flag is not supported"},
      {"start: /(?=a)/", "look-around is not supported"},
      {"start: (\"a\"", "line 1, column 8: this bracket is not closed"},
      {"start: \"a\")", "line 1, column 11: this bracket has no matching opening bracket"},
      {"start: \"b\"..\"a\"", "line 1, column 8: the range is out of order"},
      {"start: \"a\"~3..2", "the numbers are out of order"},
      {"start: \"a\"~10001", "repeats more than 10000 times"},
      {"start: \"\\x4\"", "this escape is not a character"},
      {"start: \"é\"i", "for ASCII letters only"},
      {"start: x{\"a\"}", "templates are not supported"},
      {"x{a}: a\nstart: \"a\"", "templates are not supported"},
      {"start[lazy]: \"a\"", "options of a rule are not supported"},
      {"start: <|end|>", "special tokens and other grammars are not supported here"},
      {"start: %json {}", "special tokens and other grammars are not supported here"},
      {"%declare A\nstart: A", "line 1, column 1: %declare is not supported here"},
      {"%import python.NAME\nstart: NAME", "only common can be imported from"},
      {"%import common.NOTHING\nstart: NOTHING", "common has no terminal 'NOTHING'"},
      {"%import common.INT\nINT: \"a\"\nstart: INT", "'INT' is defined already"},
      {"start = \"a\"", "line 1, column 7: expected ':'"},
      {"?A: \"a\"\nstart: A", "? and ! are for rules, not for terminals"},
  };
  for (const auto& [text, what] : wrong)
    EXPECT_NE(error_of(text).find(what), std::string::npos) << text << "\n" << error_of(text);
}

TEST(Lark, HasLimits) {
  const auto nested = [](std::uint32_t depth) {
    return "start: " + std::string(depth, '(') + "\"a\"" + std::string(depth, ')');
  };
  EXPECT_EQ(error_of(nested(kMaxGrammarDepth)), "no error");
  EXPECT_NE(error_of(nested(kMaxGrammarDepth + 1)).find("nested more than 64 deep"), std::string::npos);
  const std::string grammar = "start: \"a\"~10000 #";
  EXPECT_EQ(error_of(grammar + std::string(kMaxGrammarBytes - grammar.size(), 'x')), "no error");
  EXPECT_NE(error_of(grammar + std::string(kMaxGrammarBytes - grammar.size() + 1, 'x')).find("more than 65536 bytes"),
            std::string::npos);
  EXPECT_EQ(error_of("start: \"\xFF\""), "the grammar is not UTF-8");
}

}  // namespace
}  // namespace quire::grammar::lark_test
