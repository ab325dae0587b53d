#include "core/grammar/text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/grammar/matching.h"
#include "tests/support/patient.h"

namespace quire::grammar::regex_test {
namespace {

bool whole(std::string_view pattern, std::string_view text) {
  return testing::matches(testing::compile_regex(pattern), text);
}

bool found(std::string_view pattern, std::string_view text) {
  return testing::matches(testing::compile_regex(pattern, RegexUse::kSearch), text);
}

std::string error_of(std::string_view pattern) {
  Rules rules;
  const auto made = regex(rules, pattern, RegexUse::kSearch);
  if (made) return "no error";
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  return made.error().message;
}

TEST(Regex, MatchesTheWholeText) {
  EXPECT_TRUE(whole("a|bc", "bc"));
  EXPECT_FALSE(whole("a|bc", "abc"));
  EXPECT_TRUE(whole("^a+?(?:b|c){2}$", "aabc"));
  EXPECT_FALSE(whole("^a+?(?:b|c){2}$", "aab"));
  EXPECT_TRUE(whole("", ""));
  EXPECT_FALSE(whole("", "a"));
  EXPECT_TRUE(whole("(?<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])", "2024-11"));
  EXPECT_FALSE(whole("(?<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])", "2024-13"));
}

TEST(Regex, FindsAPartOfTheText) {
  EXPECT_TRUE(found("b+", "abbc"));
  EXPECT_TRUE(found("b+", "a\nb\n"));  // a search goes over line ends
  EXPECT_FALSE(found("b+", "ac"));
  EXPECT_TRUE(found("", "ac"));
  EXPECT_TRUE(found("^a", "ab"));
  EXPECT_FALSE(found("^a", "ba"));
  EXPECT_TRUE(found("a$", "ba"));
  EXPECT_FALSE(found("a$", "ab"));
  EXPECT_FALSE(found("^a$", "aa"));
}

TEST(Regex, KnowsAnchorsAtTheEndsOfBranches) {
  EXPECT_TRUE(found("^a|b$", "ax"));
  EXPECT_TRUE(found("^a|b$", "xb"));
  EXPECT_FALSE(found("^a|b$", "xax"));
  EXPECT_TRUE(found("(^|,)x(,|$)", "a,x,b"));
  EXPECT_TRUE(found("(^|,)x(,|$)", "x"));
  EXPECT_FALSE(found("(^|,)x(,|$)", "ax,"));
  EXPECT_TRUE(found("(^a)?b", "xb"));
  EXPECT_TRUE(found("^", "x"));
  EXPECT_TRUE(found("$", "x"));
  EXPECT_TRUE(found("^$", ""));
  EXPECT_FALSE(found("^$", "x"));
  EXPECT_TRUE(found("((^^a))", "ab"));
  EXPECT_TRUE(whole("(^a|b$)", "a"));
  EXPECT_FALSE(whole("(^a|b$)", "ax"));
}

TEST(Regex, ReadsEscapes) {
  EXPECT_TRUE(whole(R"(\d\D\w\W\s\S)", "1a_- x"));
  EXPECT_FALSE(whole(R"(\d)", "٣"));
  EXPECT_TRUE(whole(R"(\s)", "\xC2\xA0"));
  EXPECT_TRUE(whole(R"(\n\r\t\f\v\0)", std::string("\n\r\t\f\v\0", 6)));
  EXPECT_TRUE(whole(R"(\x41\u00e9\u{1F642}\ud83d\ude42\cJ)", "Aé🙂🙂\n"));
  EXPECT_TRUE(whole(R"(\.\*\[\]\{\}\(\)\^\$\|\?\+\\\/\-\_)", ".*[]{}()^$|?+\\/-_"));
  EXPECT_TRUE(whole(R"([\b\d\]\-a])", "\b"));
}

TEST(Regex, ReadsClasses) {
  EXPECT_TRUE(whole("[a-cx-]+", "abc-x"));
  EXPECT_FALSE(whole("[a-cx-]+", "d"));
  EXPECT_TRUE(whole(R"([\w-.]+)", "a-."));
  EXPECT_TRUE(whole(R"([^\d\s])", "é"));
  EXPECT_FALSE(whole(R"([^\d\s])", "3"));
  EXPECT_TRUE(whole("[^]", "\n"));
  EXPECT_TRUE(whole("a|[]", "a"));
  EXPECT_TRUE(whole("[α-ω🙂]", "🙂"));
  EXPECT_TRUE(whole("[]a]|b", "b"));  // nothing, then "a]"
}

TEST(Regex, TheDotIsOneCharacterButNoLineEnd) {
  EXPECT_TRUE(whole(".", "€"));
  EXPECT_FALSE(whole(".", "\n"));
  EXPECT_FALSE(whole(".", "\xE2\x80\xA8"));
  EXPECT_FALSE(whole(".", "ab"));
  EXPECT_FALSE(whole(".", "\xE2\x82"));
}

TEST(Regex, BracesThatCountNothingAreThemselves) {
  EXPECT_TRUE(whole("a{", "a{"));
  EXPECT_TRUE(whole("{}", "{}"));
  EXPECT_TRUE(whole("a{,2}]", "a{,2}]"));
  EXPECT_TRUE(whole("a{2,}", "aaa"));
}

TEST(Regex, AnotherFormOfTextIsTheCallersToMake) {
  Rules rules;
  const RuleId root = rules.declare("root");
  std::vector<CodePointSet> asked;
  const auto emit = [&](Rules& to, std::span<const CodePoints> ranges) {
    asked.emplace_back(ranges.begin(), ranges.end());
    const Expr parts[] = {to.bytes("<"), emit_utf8(to, ranges), to.bytes(">")};
    return to.sequence(parts);
  };
  const auto body = regex(rules, "a[bc]a", RegexUse::kWhole, emit);
  ASSERT_TRUE(body.ok());
  rules.define(root, *body);
  const auto grammar = Grammar::compile(rules, testing::byte_vocabulary(), quire::testing::kPatient);
  ASSERT_TRUE(grammar.ok());
  EXPECT_TRUE(testing::matches(*grammar, "<a><c><a>"));
  EXPECT_FALSE(testing::matches(*grammar, "aca"));
  EXPECT_THAT(asked, ::testing::ElementsAre(CodePointSet{{'a', 'a'}}, CodePointSet{{'b', 'c'}}));
}

TEST(Regex, SaysWhatItDoesNotSupportAndWhere) {
  const std::string at = "regular expression, character ";
  EXPECT_EQ(error_of("é(?=a)"), at + "2: look-around is not supported");
  EXPECT_EQ(error_of("(?<!a)"), at + "1: look-around is not supported");
  EXPECT_EQ(error_of("(?i)a"), at + "1: this kind of group is not supported: use (?:...)");
  EXPECT_EQ(error_of(R"((a)\1)"), at + "4: back references are not supported");
  EXPECT_EQ(error_of(R"((?<n>a)\k<n>)"), at + "8: back references are not supported");
  EXPECT_EQ(error_of(R"(a\b)"), at + "2: \\b is not supported");
  EXPECT_EQ(error_of(R"(a\B)"), at + "2: \\B is not supported");
  EXPECT_EQ(error_of(R"([\p{L}])"), at + "2: \\p{...} is not supported: use ranges");
  EXPECT_EQ(error_of("a^b"), at + "2: '^' is supported at the beginning of a branch only");
  EXPECT_EQ(error_of("a$b"), at + "2: '$' is supported at the end of a branch only");
  EXPECT_EQ(error_of("x(^a)"), at + "3: '^' is supported at the beginning of a branch only");
  EXPECT_EQ(error_of("(^a)*"), at + "1: a part with '^' or '$' cannot be repeated");
  EXPECT_EQ(error_of("(?:a|b"), at + "1: '(' is not closed");
  EXPECT_EQ(error_of("a)"), at + "2: ')' has no matching '('");
  EXPECT_EQ(error_of("[a"), at + "1: '[' is not closed");
  EXPECT_EQ(error_of("[z-a]"), at + "2: the range is out of order");
  EXPECT_EQ(error_of("a{2,1}"), at + "2: the numbers are out of order");
  for (const std::string_view bad : {"*a", "|+", "a**", "(?)", "{1}", "^*", "a++"}) {
    EXPECT_THAT(error_of(bad),
                ::testing::AnyOf(::testing::HasSubstr("nothing to repeat"), ::testing::HasSubstr("this kind of group")))
        << bad;
  }
  EXPECT_EQ(error_of("a\\"), at + "2: '\\' is the last character");
  EXPECT_EQ(error_of(R"(\q)"), at + "1: this escape is not supported");
  EXPECT_EQ(error_of(R"(\01)"), at + "1: octal escapes are not supported: use \\xHH");
  EXPECT_EQ(error_of(R"(\c1)"), at + "1: \\c needs a letter");
  EXPECT_EQ(error_of(R"(\x4g)"), at + "1: expected \\xHH, \\uHHHH or \\u{H...} up to 10FFFF");
  EXPECT_EQ(error_of(R"(\u{110000})"), at + "1: expected \\xHH, \\uHHHH or \\u{H...} up to 10FFFF");
  EXPECT_EQ(error_of(R"(\ud83d)"), at + "1: half of a surrogate pair is not a character");
  EXPECT_EQ(error_of("(?<1>a)"), at + "1: the group's name is invalid");
  EXPECT_EQ(error_of("\xFF"), "the regular expression is not UTF-8");
}

TEST(Regex, KeepsItsLimits) {
  EXPECT_EQ(error_of(std::string(kMaxPatternBytes - 1, 'a')), "no error");
  EXPECT_EQ(error_of(std::string(kMaxPatternBytes, 'a')), "no error");
  EXPECT_EQ(error_of(std::string(kMaxPatternBytes + 1, 'a')), "the regular expression has more than 8192 bytes");
  const auto nested = [](std::size_t depth) { return std::string(depth, '(') + "a" + std::string(depth, ')'); };
  EXPECT_EQ(error_of(nested(kMaxPatternDepth - 1)), "no error");
  EXPECT_EQ(error_of(nested(kMaxPatternDepth)), "no error");
  EXPECT_EQ(error_of(nested(kMaxPatternDepth + 1)),
            "regular expression, character 66: groups are nested more than 64 deep");
  const auto counted = [](std::uint64_t count) { return "a{" + std::to_string(count) + "}"; };
  EXPECT_EQ(error_of(counted(kMaxPatternCount - 1)), "no error");
  EXPECT_EQ(error_of(counted(kMaxPatternCount)), "no error");
  EXPECT_EQ(error_of(counted(kMaxPatternCount + 1)), "regular expression, character 2: repeats more than 10000 times");
  EXPECT_EQ(error_of(counted(1ULL << 60)), "regular expression, character 2: repeats more than 10000 times");
}

}  // namespace
}  // namespace quire::grammar::regex_test
