#include "core/text/detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/text/unicode/utf8.h"
#include "tests/core/text/small_tokenizer.h"

namespace quire::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids,
                                  bool skip_special_tokens = true) {
  Detokenizer detokenizer(tokenizer, skip_special_tokens);
  std::vector<std::string> events;
  for (const TokenId id : ids) events.push_back(detokenizer.push(id));
  events.push_back(detokenizer.finish());
  return events;
}

std::string joined(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += event;
  return text;
}

TEST(Detokenizer, HoldsACharacterUntilItsLastByte) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_THAT(streamed(tokenizer, {'x', 0xF0, 0x9F, 0x98, 0x80, 256}), ElementsAre("x", "", "", "", "😀", " a", ""));
}

TEST(Detokenizer, GivesAnIncompleteCharacterUpAtTheEnd) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_THAT(streamed(tokenizer, {0xF0, 0x9F}), ElementsAre("", "", "\uFFFD"));
}

TEST(Detokenizer, GivesAnIncompleteCharacterUpWhenTheNextByteProvesIt) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_THAT(streamed(tokenizer, {0xE2, 'x', 0xFF, 0xED, 0xA0}),
              ElementsAre("", "\uFFFDx", "\uFFFD", "", "\uFFFD\uFFFD", ""));
}

TEST(Detokenizer, ByteLevelEqualsDecodeForAnyIds) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids(1 + random() % 12);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % 2 ? 0x80 + random() % 0x80 : random() % 260);
    const std::vector<std::string> events = streamed(tokenizer, ids);
    ASSERT_EQ(joined(events), tokenizer->decode(ids, true)) << "seed " << seed;
    for (const std::string& event : events) ASSERT_TRUE(is_utf8(event)) << "seed " << seed;
  }
}

TEST(Detokenizer, ReadsBytesOfByteFallbackAndStripsTheFirstBlank) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  const std::vector<TokenId> ids = {1, 262, 3 + 0xC3, 3 + 0xA9, 262, 259, 2};
  EXPECT_THAT(streamed(tokenizer, ids), ElementsAre("", "a", "", "é", " a", " ", "", ""));
  EXPECT_EQ(tokenizer->decode(ids, true), "aé a ");
  EXPECT_EQ(tokenizer->decode(ids, false), "<s> aé a </s>");
  EXPECT_EQ(joined(streamed(tokenizer, ids, false)), "<s> aé a </s>");
}

TEST(Detokenizer, GivesOneReplacementForEachByteOfABrokenFallbackRun) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  EXPECT_THAT(streamed(tokenizer, {3 + 0xE2, 3 + 0x82, 261}), ElementsAre("", "", "\uFFFD\uFFFDb", ""));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{3 + 'x', 3 + 0xE2, 261}, true), "\uFFFD\uFFFDb");
}

TEST(Detokenizer, StripsAtTheAnswersStartOnly) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  EXPECT_THAT(streamed(tokenizer, {259, 259, 261}), ElementsAre("", " ", "b", ""));
  EXPECT_THAT(streamed(tokenizer, {261, 259}), ElementsAre("b", " ", ""));
}

TEST(Detokenizer, JoinsWithBlanksWhereThereIsNoDecoder) {
  const auto tokenizer = SmallTokenizer::letters().load();
  const std::vector<TokenId> ids = {0, 1, 99, 5};
  EXPECT_EQ(tokenizer->decode(ids, true), "a b ab");
  EXPECT_EQ(joined(streamed(tokenizer, ids)), "a b ab");
}

TEST(Detokenizer, MetaspaceLeavesTheFirstTokensMarkOut) {
  SmallTokenizer small = SmallTokenizer::letters();
  small.decoder = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})";
  const auto tokenizer = small.load();
  EXPECT_THAT(streamed(tokenizer, {7, 7}), ElementsAre("ab", " ab", ""));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{7, 7}, true), "ab ab");
}

TEST(Detokenizer, KeepsTheFirstBlankWhereItGoesOn) {
  const auto goes_on = [](const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids) {
    Detokenizer detokenizer(tokenizer, true, true);
    std::string text;
    for (const TokenId id : ids) text += detokenizer.push(id);
    return text + detokenizer.finish();
  };
  EXPECT_EQ(goes_on(SmallTokenizer::sentencepiece().load(), {259, 261}), " b");
  EXPECT_EQ(goes_on(SmallTokenizer::letters().load(), {0, 1}), " a b");
  SmallTokenizer small = SmallTokenizer::letters();
  small.decoder = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})";
  EXPECT_EQ(goes_on(small.load(), {7, 7}), " ab ab");
}

TEST(Detokenizer, PassesOverIdsWithoutAToken) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_THAT(streamed(tokenizer, {0xC3, -1, 99'999, 0xA9}), ElementsAre("", "", "", "é", ""));
}

}  // namespace
}  // namespace quire::text
