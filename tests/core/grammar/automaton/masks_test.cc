#include "core/grammar/automaton/masks.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace quire::grammar
