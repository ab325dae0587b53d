#include "core/grammar/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/grammar/brute_force.h"
#include "tests/core/grammar/matching.h"
#include "tests/core/grammar/random_grammar.h"
#include "tests/support/patient.h"

namespace quire::grammar::matcher_test {
namespace {

using testing::BruteForce;
using testing::byte_vocabulary;
using testing::compile_ebnf;
using testing::mask_of;
using testing::RandomGrammar;
using testing::tokens_of;

constexpr std::uint64_t kNumGrammars = 600;

// Every text of up to `longest` letters, shorter ones first.
std::vector<std::string> all_texts(std::size_t longest) {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == longest) break;
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

bool matches(Matcher matcher, std::string_view text) {
  for (const char c : text) {
    if (!matcher.accept(c - 'a')) return false;
  }
  return matcher.complete();
}

// Random grammars that compile, each with a random vocabulary whose tokens 0, 1 and 2 are the letters.
template <typename Check>
void with_random_grammars(std::uint64_t num_grammars, const Check& check) {
  std::uint64_t num_compiled = 0;
  for (std::uint64_t seed = 0; seed < num_grammars; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomGrammar random(seed);
    const Rules rules = random.rules();
    const auto grammar = Grammar::compile(rules, random.vocabulary(), quire::testing::kPatient);
    if (!grammar) {
      EXPECT_THAT(grammar.error().message,
                  ::testing::AnyOf(::testing::HasSubstr("left recursion"), ::testing::HasSubstr("no text matches")));
      continue;
    }
    ++num_compiled;
    check(random, rules, *grammar);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(num_compiled, num_grammars / 3);
}

TEST(Matcher, AcceptsTheTextsOfTheGrammarAndNoOthers) {
  const std::vector<std::string> texts = all_texts(6);
  with_random_grammars(kNumGrammars, [&](RandomGrammar&, const Rules& rules, const auto& grammar) {
    const Matcher start(grammar);
    for (const std::string& text : texts) {
      ASSERT_EQ(matches(start, text), BruteForce(rules, text).matches()) << "'" << text << "'";
    }
  });
}

TEST(Matcher, AllowsExactlyTheTokensThatItAccepts) {
  with_random_grammars(2 * kNumGrammars, [](RandomGrammar& random, const Rules&, const auto& grammar) {
    for (int walk = 0; walk < 5; ++walk) {
      Matcher matcher(grammar);
      std::string text;
      while (text.size() < 7) {  // ambiguous ones have thousands of readings soon
        const std::vector<TokenId> allowed = tokens_of(mask_of(matcher, *grammar));
        std::vector<TokenId> accepted;
        for (TokenId t = 0; t < static_cast<TokenId>(grammar->vocabulary().size()); ++t) {
          if (Matcher(matcher).accept(t)) accepted.push_back(t);
        }
        ASSERT_EQ(allowed, accepted) << "behind '" << text << "'";
        ASSERT_FALSE(allowed.empty()) << "behind '" << text << "'";  // no dead end: letters are tokens
        const TokenId next = allowed[random.below(static_cast<std::uint32_t>(allowed.size()))];
        ASSERT_TRUE(matcher.accept(next));
        if (grammar->vocabulary().is_end(next)) break;
        text += grammar->vocabulary().piece(next);
      }
    }
  });
}

TEST(Matcher, DoesNotCareHowTheTextWasCutIntoTokens) {
  with_random_grammars(kNumGrammars, [](RandomGrammar& random, const Rules&, const auto& grammar) {
    Matcher by_tokens(grammar);
    Matcher by_letters(grammar);
    for (int step = 0; step < 10; ++step) {
      const std::vector<TokenId> allowed = tokens_of(mask_of(by_tokens, *grammar));
      const TokenId next = allowed[random.below(static_cast<std::uint32_t>(allowed.size()))];
      ASSERT_TRUE(by_tokens.accept(next));
      for (const char c : grammar->vocabulary().piece(next)) ASSERT_TRUE(by_letters.accept(c - 'a'));
      ASSERT_EQ(mask_of(by_tokens, *grammar), mask_of(by_letters, *grammar));
      ASSERT_EQ(by_tokens.complete(), by_letters.complete());
      ASSERT_EQ(by_tokens.only_ends(), by_letters.only_ends());
    }
  });
}

// States count as alike for so many bytes: tokens on both sides of every such length, in repetitions that are about to end.
TEST(Matcher, AllowsExactlyTheTokensThatItAcceptsHoweverLongTheyAre) {
  std::vector<std::string> pieces = {"a", "b", "c"};
  for (std::size_t length = 2; length < 100; length += length < 20 || (length > 60 && length < 70) ? 1 : 9) {
    for (const char* part : {"a", "ab", "abc", "aabca", "bcab"}) {
      std::string piece;
      while (piece.size() < length) piece += part;
      pieces.push_back(piece.substr(0, length));
    }
  }
  const auto vocabulary = std::make_shared<const Vocabulary>(pieces, std::vector<TokenId>{});
  RandomGrammar random(1);
  for (const char* text : {R"(root ::= [a-c]{0,150})", R"(root ::= ("a" | "b" "c"? | "c" "a"){3,90} "b")",
                           R"(root ::= word{2,60}
                              word ::= [ab]+ "c" | "c"? word2
                              word2 ::= "ab" word2? | "a")",
                           R"(root ::= "a" root? "b"? | [abc]{2,70})",
                           R"(root ::= part{0,120} "c"
                              part ::= "a" | "b" | "ca" | "aab" part)"}) {
    const auto grammar = compile_ebnf(text, vocabulary);
    for (int walk = 0; walk < 8; ++walk) {
      Matcher matcher(grammar);
      for (int step = 0; step < 40; ++step) {
        const std::vector<TokenId> allowed = tokens_of(mask_of(matcher, *grammar));
        std::vector<TokenId> accepted;
        for (TokenId t = 0; t < static_cast<TokenId>(pieces.size()); ++t) {
          if (Matcher(matcher).accept(t)) accepted.push_back(t);
        }
        ASSERT_EQ(allowed, accepted) << text << ", step " << step;
        if (allowed.empty()) break;
        const std::uint32_t few = walk % 2 == 0 ? 3 : static_cast<std::uint32_t>(allowed.size());
        ASSERT_TRUE(matcher.accept(allowed[random.below(std::min(few, static_cast<std::uint32_t>(allowed.size())))]));
      }
    }
  }
}

// What leads back to where it was met is read at once: characters whole, cut off, and what is none.
TEST(Matcher, AllowsExactlyTheTokensThatItAcceptsOfAllCharacters) {
  const char* const parts[] = {
      "a",        "Z",    "7",    "\"",           "\\",           "\n",       " ",    "\xC3\xA9",
      "\xE4\xB8", "\xAD", "\xE4", "\xE4\xB8\xAD", "\xED\xA0\x80", "\xC0\x80", "\xFF", "\xF0\x9F\x98\x80",
      "\xF0\x9F", "\x98"};
  RandomGrammar random(2);
  std::vector<std::string> pieces;
  for (int b = 0; b < 256; ++b) pieces.push_back(std::string(1, static_cast<char>(b)));
  while (pieces.size() < 1500) {
    std::string piece;
    for (std::uint32_t n = 1 + random.below(6); n > 0; --n) piece += parts[random.below(std::size(parts))];
    pieces.push_back(piece);
  }
  const auto vocabulary = std::make_shared<const Vocabulary>(pieces, std::vector<TokenId>{});
  for (const char* text :
       {R"(root ::= "\"" [^"]* "\"")", R"(root ::= [^\n]{0,30})", R"(root ::= [a-zé]+ ("\"" [^"7] "\"")? root?)",
        R"(root ::= [\x00-\uD7FF]* "\"")", R"(root ::= ([^"\\] | "\\" [^n])* "\n")",
        R"(root ::= [a-zA-Z0-9 中]* part
                              part ::= [^ ]+ (" " part)?)"}) {
    const auto grammar = compile_ebnf(text, vocabulary);
    for (int walk = 0; walk < 3; ++walk) {
      Matcher matcher(grammar);
      for (int step = 0; step < 12; ++step) {
        const std::vector<TokenId> allowed = tokens_of(mask_of(matcher, *grammar));
        std::vector<TokenId> accepted;
        for (TokenId t = 0; t < static_cast<TokenId>(pieces.size()); ++t) {
          if (Matcher(matcher).accept(t)) accepted.push_back(t);
        }
        ASSERT_EQ(allowed, accepted) << text << ", step " << step;
        if (allowed.empty()) break;
        ASSERT_TRUE(matcher.accept(allowed[random.below(static_cast<std::uint32_t>(allowed.size()))]));
      }
    }
  }
}

TEST(Matcher, LeadsToTextsOfTheGrammarAlone) {
  int num_finished = 0;
  with_random_grammars(kNumGrammars, [&](RandomGrammar& random, const Rules& rules, const auto& grammar) {
    for (int walk = 0; walk < 5; ++walk) {
      Matcher matcher(grammar);
      std::string text;
      while (text.size() < 20) {
        const std::vector<TokenId> allowed = tokens_of(mask_of(matcher, *grammar));
        const TokenId next = allowed[random.below(static_cast<std::uint32_t>(allowed.size()))];
        ASSERT_TRUE(matcher.accept(next));
        if (grammar->vocabulary().is_end(next)) {
          ASSERT_TRUE(BruteForce(rules, text).matches()) << "'" << text << "'";
          ++num_finished;
          break;
        }
        text += grammar->vocabulary().piece(next);
      }
    }
  });
  EXPECT_GT(num_finished, 500);
}

TEST(Matcher, SaysWhetherAnythingMayFollow) {
  const auto grammar = compile_ebnf(R"(root ::= "ab" "c"?)");
  Matcher matcher(grammar);
  EXPECT_FALSE(matcher.complete());
  EXPECT_TRUE(testing::takes(matcher, "ab"));
  EXPECT_TRUE(matcher.complete());
  EXPECT_FALSE(matcher.only_ends());
  EXPECT_TRUE(testing::takes(matcher, "c"));
  EXPECT_TRUE(matcher.complete());
  EXPECT_TRUE(matcher.only_ends());
}

TEST(Matcher, ChangesNothingWhereATokenIsNotAllowed) {
  const auto grammar = compile_ebnf(R"(root ::= "a" ("bc" | "bd"))", byte_vocabulary({"abx", "abd"}));
  Matcher matcher(grammar);
  const auto before = mask_of(matcher, *grammar);
  EXPECT_FALSE(matcher.accept(256));
  EXPECT_FALSE(matcher.accept('b'));
  EXPECT_FALSE(matcher.accept(258));  // the end
  EXPECT_FALSE(matcher.accept(-1));
  EXPECT_FALSE(matcher.accept(259));
  EXPECT_EQ(mask_of(matcher, *grammar), before);
  EXPECT_TRUE(matcher.accept(257));
  EXPECT_TRUE(matcher.only_ends());
}

TEST(Matcher, AnEndIsAllowedWhereTheTextIsCompleteAndAddsNothing) {
  const auto grammar = compile_ebnf(R"(root ::= "a"+)");
  Matcher matcher(grammar);
  EXPECT_THAT(tokens_of(mask_of(matcher, *grammar)), ::testing::ElementsAre('a'));
  EXPECT_TRUE(matcher.accept('a'));
  EXPECT_TRUE(matcher.accept(256));
  EXPECT_THAT(tokens_of(mask_of(matcher, *grammar)), ::testing::ElementsAre('a', 256));
}

TEST(Matcher, OverwritesAllOfTheMask) {
  const auto grammar = compile_ebnf(R"(root ::= "a")");
  Matcher matcher(grammar);
  std::vector<std::uint32_t> wide(grammar->vocabulary().mask_words() + 3, 0xFFFFFFFF);
  matcher.allowed(wide);
  EXPECT_THAT(tokens_of(wide), ::testing::ElementsAre('a'));
}

TEST(Matcher, AllowsNothingWhereNoTokenSpellsWhatIsNeeded) {
  const auto vocabulary =
      std::make_shared<const Vocabulary>(std::vector<std::string>{"a", ""}, std::vector<TokenId>{1});
  const auto grammar = compile_ebnf(R"(root ::= "a" "b")", vocabulary);
  Matcher matcher(grammar);
  EXPECT_TRUE(matcher.accept(0));
  EXPECT_THAT(tokens_of(mask_of(matcher, *grammar)), ::testing::IsEmpty());
}

TEST(Matcher, ACopyGoesItsOwnWay) {
  const auto grammar = compile_ebnf(R"x(root ::= "(" root ")" | "x")x");
  Matcher one(grammar);
  ASSERT_TRUE(testing::takes(one, "(("));
  Matcher other(one);
  ASSERT_TRUE(testing::takes(other, "(x)))"));
  EXPECT_TRUE(other.only_ends());
  ASSERT_TRUE(testing::takes(one, "x)"));
  EXPECT_FALSE(one.complete());
  one = other;
  EXPECT_TRUE(one.complete());
}

TEST(Matcher, FollowsDeepNesting) {
  const auto grammar = compile_ebnf(R"(root ::= "[" (root ("," root)*)? "]")");
  Matcher matcher(grammar);
  constexpr int kDepth = 20'000;
  for (int i = 0; i < kDepth; ++i) ASSERT_TRUE(matcher.accept('['));
  EXPECT_THAT(tokens_of(mask_of(matcher, *grammar)), ::testing::ElementsAre('[', ']'));
  for (int i = 0; i < kDepth; ++i) ASSERT_TRUE(matcher.accept(']'));
  EXPECT_TRUE(matcher.only_ends());
}

TEST(Matcher, DoesNotPayForAmbiguity) {
  // Every text has exponentially many readings.
  const auto grammar = compile_ebnf(R"(root ::= part* "!"
                                       part ::= many | many many
                                       many ::= "a" "a"* | "a" many?)");
  Matcher matcher(grammar);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(matcher.accept('a'));
  EXPECT_THAT(tokens_of(mask_of(matcher, *grammar)), ::testing::ElementsAre('!', 'a'));
}

TEST(Matcher, StopsFollowingWhatHasTooManyReadings) {
  // Rules that all begin alike; they are used twice, so as not to be written out where they are used.
  const auto readings = [](int num_rules) {
    Rules rules;
    const RuleId root = rules.declare("root");
    std::vector<Expr> uses;
    for (int i = 0; i < num_rules; ++i) {
      const RuleId rule = rules.declare("r" + std::to_string(i));
      const Expr parts[] = {rules.bytes("aaaaaaaaaaaa"), rules.repeat(rules.bytes("a"), 0, kUnbounded),
                            rules.bytes("b" + std::to_string(i))};
      rules.define(rule, rules.sequence(parts));
      uses.push_back(rules.use(rule));
    }
    const Expr twice[] = {rules.choice(uses), rules.choice(uses)};
    rules.define(root, rules.sequence(twice));
    return *Grammar::compile(rules, byte_vocabulary(), quire::testing::kPatient);
  };
  const auto good = readings(1000);
  Matcher matcher(good);
  EXPECT_TRUE(testing::takes(matcher, "aaaaaaaaaaaaaab7"));
  EXPECT_FALSE(tokens_of(mask_of(matcher, *good)).empty());
  const auto bad = readings(2500);
  Matcher lost(bad);
  EXPECT_THAT(tokens_of(mask_of(lost, *bad)), ::testing::IsEmpty());
  EXPECT_TRUE(lost.accept('a'));
  EXPECT_FALSE(lost.complete());
  EXPECT_FALSE(lost.accept('a'));
}

}  // namespace
}  // namespace quire::grammar::matcher_test
