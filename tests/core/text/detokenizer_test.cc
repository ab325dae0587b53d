#include "core/text/detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
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
  EXPECT_THAT(streamed(tokenizer, ids), ElementsAre("", "a", "", "", "é a", " ", "", ""));
  EXPECT_EQ(tokenizer->decode(ids, true), "aé a ");
  EXPECT_EQ(tokenizer->decode(ids, false), "<s> aé a </s>");
  EXPECT_EQ(joined(streamed(tokenizer, ids, false)), "<s> aé a </s>");
}

TEST(Detokenizer, GivesOneReplacementForEachByteOfABrokenFallbackRun) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  EXPECT_THAT(streamed(tokenizer, {3 + 0xE2, 3 + 0x82, 261}), ElementsAre("", "", "\uFFFD\uFFFDb", ""));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{3 + 'x', 3 + 0xE2, 261}, true), "\uFFFD\uFFFDb");
}

TEST(Detokenizer, OneWrongByteSpoilsItsWholeRunOfFallbackBytesAsInTheLibrary) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  const std::string three = "\uFFFD\uFFFD\uFFFD";
  EXPECT_THAT(streamed(tokenizer, {3 + 0xC3, 3 + 0xA9, 3 + 0xFF, 3 + 'x', 260}),
              ElementsAre("", "", three, "\uFFFD", "a", ""));
  EXPECT_THAT(streamed(tokenizer, {260, 3 + 0xC3, 3 + 0xA9, 3 + 0xE2}), ElementsAre("a", "", "", "", three));
  EXPECT_THAT(streamed(tokenizer, {260, 3 + '\n', 3 + '\n', 260, 3 + '\n'}),
              ElementsAre("a", "", "", "\n\na", "", "\n"));
}

TEST(Detokenizer, ByteFallbackEqualsDecodeForAnyIds) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {"\n", "é", "€", "😀", "\xE2\x82", "\xFF", "x"};
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids;
    for (int part = 0; part < 6; ++part) {
      if (random() % 4 == 0) {
        ids.push_back(static_cast<TokenId>(random() % 264));
      } else {
        for (const char byte : pieces[random() % pieces.size()]) ids.push_back(3 + static_cast<unsigned char>(byte));
      }
    }
    for (const bool skips : {true, false}) {
      const std::vector<std::string> events = streamed(tokenizer, ids, skips);
      ASSERT_EQ(joined(events), tokenizer->decode(ids, skips)) << "seed " << seed;
      for (const std::string& event : events) ASSERT_TRUE(is_utf8(event)) << "seed " << seed;
    }
  }
}

TEST(Detokenizer, ReportsTheCharactersThatItHolds) {
  Detokenizer detokenizer(SmallTokenizer::sentencepiece().load(), true);
  const auto after = [&](TokenId id) {
    detokenizer.push(id);
    return std::string(detokenizer.completed()) + std::to_string(detokenizer.num_held());
  };
  EXPECT_EQ(after(260), "0");
  EXPECT_EQ(after(3 + '\n'), "\n1");
  EXPECT_EQ(after(3 + 0xC3), "1");
  EXPECT_EQ(after(3 + 0xA9), "é2");
  EXPECT_EQ(after(3 + 0xFF), "0");
  EXPECT_EQ(after(3 + '\n'), "0");  // part of the broken run
  EXPECT_EQ(after(260), "0");
  EXPECT_EQ(after(3 + '\n'), "\n1");
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

TEST(Detokenizer, RewritesWhatTheDecodersLastStepDoes) {
  SmallTokenizer small = SmallTokenizer::sentencepiece();
  small.decoder =
      R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁",)"
      R"( "prepend_scheme": "always"}, {"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "\n a"}, "content": "\n"}]})";
  const auto tokenizer = small.load();
  constexpr TokenId kBreak = 3 + '\n', kA = 260, kB = 261, kBlankA = 262, kBlank = 259;
  EXPECT_THAT(streamed(tokenizer, {kBlankA, kBreak, kBlankA, kB}), ElementsAre("a", "", "\n", "b", ""));
  EXPECT_THAT(streamed(tokenizer, {kB, kBreak, kBlank, kB, kBreak, kBlank}),
              ElementsAre("b", "", "", "\n b", "", "", "\n "));
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids(1 + random() % 12);
    for (TokenId& id : ids) id = std::array{kBreak, kA, kB, kBlankA, kBlank, TokenId{3 + 0xE2}}[random() % 6];
    ASSERT_EQ(joined(streamed(tokenizer, ids)), tokenizer->decode(ids, true));
  }
}

TEST(Detokenizer, PassesOverIdsWithoutAToken) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_THAT(streamed(tokenizer, {0xC3, -1, 99'999, 0xA9}), ElementsAre("", "", "", "é", ""));
}

}  // namespace
}  // namespace quire::text
