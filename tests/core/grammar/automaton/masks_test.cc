#include "core/grammar/automaton/masks.h"

#include <gtest/gtest.h>

#include "core/grammar/automaton/automaton.h"
#include "tests/core/grammar/matching.h"
#include "tests/support/allocation_counter.h"

namespace quire::grammar {
namespace {

using testing::byte_vocabulary;
using testing::compile_ebnf;
using testing::mask_of;

const char* const kJson = R"x(
root   ::= object
value  ::= object | array | string | "true" | "false" | "null" | [0-9]+
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
array  ::= "[" (value ("," value)*)? "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt]){0,40} "\""
)x";
const std::string kText = R"({"a":{"bc\n":[1,22,"x é"],"d":true},"e":[[],{}],"f":"\"}"})";

TEST(Masks, AllocatesNothingForWhatWasSeenBefore) {
  const auto grammar = compile_ebnf(kJson, byte_vocabulary({"\":", "\",\"", "\":{\"", "}}", "]}", "[1,"}));
  std::vector<std::uint32_t> mask(grammar->vocabulary().mask_words());
  const Matcher start(grammar);
  Matcher matcher(start);
  const auto walk = [&] {
    matcher = start;
    for (const char c : kText) {
      matcher.allowed(mask);
      CHECK(matcher.accept(static_cast<unsigned char>(c)));
    }
    CHECK(matcher.only_ends());
  };
  walk();
  const long before = quire::testing::num_allocations;
  for (int i = 0; i < 10; ++i) walk();
  EXPECT_EQ(quire::testing::num_allocations, before);
}

TEST(Masks, ForgetsWhatItKeepsWhenItsRoomIsFull) {
  // Each of these states is kept as a mask of 9 words, and there is room for 512 masks.
  const auto grammar = compile_ebnf(R"(root ::= ([a-z] [0-9a-z]){1500} "!")");
  for (int round = 0; round < 2; ++round) {
    Matcher matcher(grammar);
    for (int i = 0; i < 3000; ++i) {
      const auto tokens = testing::tokens_of(mask_of(matcher, *grammar));
      ASSERT_EQ(tokens.size(), i % 2 == 0 ? 26u : 36u) << i;
      ASSERT_EQ(tokens.back(), 'z');
      ASSERT_TRUE(matcher.accept('m'));
    }
    EXPECT_TRUE(testing::takes(matcher, "!"));
    EXPECT_TRUE(matcher.only_ends());
  }
}

TEST(Masks, SharedBySequencesThatDoNotSeeEachOther) {
  const auto grammar = compile_ebnf(kJson, byte_vocabulary({"\":", "}}", "]}", "}]"}));
  Matcher one(grammar);
  Matcher other(grammar);
  const auto alone = [&](std::string_view text) {
    const auto fresh = compile_ebnf(kJson, byte_vocabulary({"\":", "}}", "]}", "}]"}));
    Matcher matcher(fresh);
    CHECK(testing::takes(matcher, text));
    return mask_of(matcher, *fresh);
  };
  ASSERT_TRUE(testing::takes(one, R"({"a":{"b":{)"));
  ASSERT_TRUE(testing::takes(other, R"({"a":[{)"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(mask_of(one, *grammar), alone(R"({"a":{"b":{)"));
    EXPECT_EQ(mask_of(other, *grammar), alone(R"({"a":[{)"));
  }
}

// What finding masks costs along a text, byte by byte; what accepting costs is not counted.
std::uint64_t work_of_masks(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  std::uint64_t work = 0;
  for (const char c : text) {
    const std::uint64_t before = grammar->masks().work();
    EXPECT_FALSE(testing::tokens_of(mask_of(matcher, *grammar)).empty());
    work += grammar->masks().work() - before;
    EXPECT_TRUE(matcher.accept(static_cast<unsigned char>(c)));
  }
  return work;
}

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::vector<std::string> words(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::string word;
    for (std::size_t n = i; n > 0 || word.size() < 3; n /= 26) word += static_cast<char>('a' + n % 26);
    all.push_back(word);
  }
  return all;
}

TEST(Masks, TakeNoStepsForTextsSeenBefore) {
  const std::vector<std::string> pieces = {"\":", " a",   " and", "and ", "b, c", "words, and other words",
                                           "}}",  "]]],", "a\"}"};
  const struct {
    const char* grammar;
    std::string text;
  } cases[] = {
      {kJson, kText},
      {R"x(root ::= ([a-z]+ [,;]? " "){3,60} [a-z]+ ".")x", repeated("one, two; and ", 15) + "end."},
      {R"x(root ::= "'" ([^'\\] | "\\" ['\\]){0,1500} "'")x", "'" + repeated("it\\'s ", 200) + "'"},
      {R"x(root ::= "[" (root ("," root)*)? "]")x", repeated("[", 300) + repeated("]", 300)},
      {R"x(root ::= [a-z] root more? | [a-z]
           more ::= [a-z ]+)x",
       repeated("ab", 20)},
  };
  for (const auto& one : cases) {
    const auto grammar = compile_ebnf(one.grammar, byte_vocabulary(pieces));
    work_of_masks(grammar, one.text);
    EXPECT_EQ(work_of_masks(grammar, one.text), 0u) << one.grammar;
  }
}

// Where a rule may end anywhere, what lies below is asked only behind what may come there.
TEST(Masks, HaveRoomForALongStringThatIsAboutToEnd) {
  const auto vocabulary = byte_vocabulary(words(20'000));
  for (const char* text : {"root ::= [^\\x00]{1,120}", R"(root ::= "\"" text "\"," (" \"" text "\"")?
                                                         text ::= ([^"\\] | "\\" ["\\]){0,120})"}) {
    const auto grammar = compile_ebnf(text, vocabulary);
    const std::string long_text = "\"" + std::string(119, 'a');
    work_of_masks(grammar, long_text);
    EXPECT_EQ(work_of_masks(grammar, long_text), 0u) << text;
  }
}

TEST(Masks, OfShortTextsAreFoundWhenTheGrammarIsCompiled) {
  const auto grammar = compile_ebnf(kJson, byte_vocabulary({"\":", "\",\"", "}}", "]}", "true,\""}));
  EXPECT_GT(grammar->masks().work(), 0u);
  EXPECT_EQ(work_of_masks(grammar, R"({"abc":[1,22,"x"],"d":true})"), 0u);
}

// Every rule reads all letters, and all end in another way: as many states at once as there are rules.
std::string many_readings(int count) {
  std::string rules = "root ::= any any\nany ::= r0";
  for (int i = 1; i < count; ++i) rules += " | r" + std::to_string(i);
  for (int i = 0; i < count; ++i) {
    const std::string name = "r" + std::to_string(i);
    rules += "\n" + name + " ::= [a-z ]* \"" + std::to_string(i) + ".\" (" + name + " \"-" + std::to_string(i) + "\")?";
  }
  return rules + "\n";
}

TEST(Masks, TakeABoundedAmountOfWorkHoweverAmbiguousTheText) {
  const auto vocabulary = byte_vocabulary(words(20'000));
  for (const int count : {10, 1000}) {
    const auto grammar = compile_ebnf(many_readings(count), vocabulary);
    EXPECT_LT(grammar->masks().work(), kPrepareWork + kMaxMaskWork / 8);
    Matcher matcher(grammar);
    ASSERT_TRUE(matcher.accept('a'));
    const std::uint64_t before = grammar->masks().work();
    const auto tokens = testing::tokens_of(mask_of(matcher, *grammar));
    EXPECT_LT(grammar->masks().work() - before, kMaxMaskWork + kMaxMaskWork / 8);
    EXPECT_EQ(tokens.empty(), count == 1000);
    EXPECT_EQ(matcher.accept('a'), count == 10);  // behind no mask nothing is accepted
    EXPECT_FALSE(matcher.complete());
  }
}

TEST(Masks, ReadWhatIsWrittenWithLettersAloneAtOnceInsideAString) {
  std::vector<std::string> pieces = words(20'000);
  for (std::size_t i = 0; i < 1000; ++i) pieces[i] += "\xE4\xB8\xAD";
  const auto vocabulary = byte_vocabulary(pieces);
  for (const char* text : {R"(root ::= "\"" [^"]* "\"")", R"(root ::= "\"" ([^"\\] | "\\" ["\\]){0,5000} "\"")"}) {
    const auto grammar = compile_ebnf(text, vocabulary);
    Matcher at_string(grammar);
    ASSERT_TRUE(at_string.accept('"'));
    EXPECT_GT(testing::tokens_of(mask_of(at_string, *grammar)).size(), 20'000u);
    EXPECT_LT(grammar->masks().work(), vocabulary->tree().size());
  }
}

TEST(Masks, CountTheSameWorkWhetherOrNotItHasBeenDone) {
  const auto vocabulary = byte_vocabulary(words(500));
  const auto fresh = [&] { return compile_ebnf(many_readings(5), vocabulary); };
  Stacks stacks;
  std::vector<Stack> tops;
  const auto can = [&](const Grammar& grammar, std::uint64_t most_work) {
    stacks = Stacks();
    tops = {{grammar.automaton().start, Stacks::kBottom}};
    std::vector<std::uint32_t> mask(grammar.vocabulary().mask_words(), ~0u);
    const bool found = grammar.masks().allowed(stacks, tops, mask, most_work);
    EXPECT_EQ(testing::tokens_of(mask).empty(), !found);
    return found;
  };
  const auto known = fresh();
  ASSERT_TRUE(can(*known, kMaxMaskWork));
  std::uint64_t needed = 0;
  for (std::uint64_t step = 1 << 20; step > 0; step /= 2) {
    if (!can(*known, needed + step)) needed += step;
  }
  ++needed;
  for (const std::uint64_t most_work : {needed - 1, needed, needed + 1}) {
    Masks unknown(known->automaton(), *vocabulary);
    stacks = Stacks();
    tops = {{known->automaton().start, Stacks::kBottom}};
    std::vector<std::uint32_t> mask(vocabulary->mask_words());
    EXPECT_EQ(unknown.allowed(stacks, tops, mask, most_work), most_work >= needed);
    EXPECT_EQ(can(*known, most_work), most_work >= needed);
  }
}

}  // namespace
}  // namespace quire::grammar
