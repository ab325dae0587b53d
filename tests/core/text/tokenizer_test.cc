#include "core/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "core/base/allowance.h"
#include "core/base/start_error.h"
#include "tests/core/text/small_tokenizer.h"
#include "tests/support/source_tree.h"

namespace quire::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_refused(const SmallTokenizer& small, const std::string& why, std::string_view config = "") {
  try {
    small.load(config);
    ADD_FAILURE() << "was taken, though: " << why;
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(Tokenizer, ReadsMergesInBothSpellings) {
  EXPECT_THAT(SmallTokenizer::letters().load()->encode("abcd▁ab", false), ElementsAre(6, 3, 7));
}

TEST(Tokenizer, EncodesBytes) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_THAT(tokenizer->encode("a a\n", false), ElementsAre('a', 256, '\n'));
  EXPECT_THAT(tokenizer->encode("\xC3\xA9", false), ElementsAre(0xC3, 0xA9));
  EXPECT_THAT(tokenizer->encode("", true), IsEmpty());
}

TEST(Tokenizer, ReadsBytesThatAreNotUtf8AsReplacementCharacters) {
  const auto tokenizer = SmallTokenizer::bytes().load();
  EXPECT_EQ(tokenizer->encode("a\xE2\x82z", false), tokenizer->encode("a\uFFFDz", false));
}

TEST(Tokenizer, SpellsCharactersBeyondItsVocabularyInBytes) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  EXPECT_THAT(tokenizer->encode("a b\n", false), ElementsAre(262, 259, 261, 3 + '\n'));
  EXPECT_THAT(tokenizer->encode("é", false), ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
}

TEST(Tokenizer, PutsBosAndEosAroundOnlyWhenAsked) {
  SmallTokenizer small = SmallTokenizer::sentencepiece();
  small.post_processor =
      R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing", "single":
      [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
       {"SpecialToken": {"id": "</s>", "type_id": 0}}], "special_tokens": {
       "<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}}]})";
  const auto tokenizer = small.load();
  EXPECT_THAT(tokenizer->encode("a", true), ElementsAre(1, 262, 2));
  EXPECT_THAT(tokenizer->encode("a", false), ElementsAre(262));
  EXPECT_THAT(tokenizer->encode("", true), ElementsAre(1, 2));
}

TEST(Tokenizer, FindsSpecialTokensInTheText) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load();
  EXPECT_THAT(tokenizer->encode("<s>a</s>", false), ElementsAre(1, 262, 2));
}

TEST(Tokenizer, MetaspaceMarksTheFirstWordOnlyAtTheInputsStart) {
  SmallTokenizer small = SmallTokenizer::sentencepiece();
  small.normalizer = "null";
  small.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false})";
  EXPECT_THAT(small.load()->encode("a<s>a", false), ElementsAre(262, 1, 260));
  small.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true})";
  EXPECT_THAT(small.load()->encode("a<s>a a", false), ElementsAre(262, 1, 262, 262));
  small.pre_tokenizer = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})";
  EXPECT_THAT(small.load()->encode("a a", false), ElementsAre(260, 262));
}

TEST(Tokenizer, LooksForNormalizedTokensInNormalizedText) {
  SmallTokenizer small = SmallTokenizer::letters();
  small.normalizer = R"({"type": "Lowercase"})";
  small.added_tokens =
      R"([{"id": 8, "content": "YES", "normalized": true}, {"id": 9, "content": "NO", "normalized": false}])";
  const auto tokenizer = small.load();
  EXPECT_THAT(tokenizer->encode("aYesaYES", false), ElementsAre(0, 8, 0, 8));
  EXPECT_THAT(tokenizer->encode("aNOno", false), ElementsAre(0, 9));  // no n, o in the vocabulary, and nothing unknown
  EXPECT_EQ(tokenizer->piece(8), "YES");
}

TEST(Tokenizer, KnowsItsVocabulary) {
  SmallTokenizer small = SmallTokenizer::sentencepiece();
  small.added_tokens.insert(small.added_tokens.size() - 1, R"(, {"id": 300, "content": "<tool>", "special": false})");
  const auto tokenizer =
      small.load(R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null})");
  EXPECT_EQ(tokenizer->vocab_size(), 301u);
  EXPECT_EQ(tokenizer->id_of("▁a"), 262);
  EXPECT_EQ(tokenizer->id_of("<tool>"), 300);
  EXPECT_EQ(tokenizer->id_of("<none>"), std::nullopt);
  EXPECT_EQ(tokenizer->piece(262), "▁a");
  EXPECT_EQ(tokenizer->piece(300), "<tool>");
  EXPECT_EQ(tokenizer->piece(299), "");
  EXPECT_EQ(tokenizer->piece(301), "");
  EXPECT_EQ(tokenizer->piece(-1), "");
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(300));
  EXPECT_FALSE(tokenizer->is_special(262));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
}

TEST(Tokenizer, HasNoBosOrEosUnlessTheConfigNamesThem) {
  const auto tokenizer = SmallTokenizer::sentencepiece().load(R"({"bos_token": null})");
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_EQ(tokenizer->eos(), std::nullopt);
  EXPECT_EQ(SmallTokenizer::letters().load(R"({"bos_token": "<s>", "eos_token": ""})")->bos(), std::nullopt);
  expect_refused(SmallTokenizer::letters(), "tokenizer_config.json: not JSON", "{");
}

TEST(Tokenizer, TakesTheMapsWordOverAConfigsThatHasNoDecoderOfAddedTokens) {
  const std::string json = SmallTokenizer::sentencepiece().json();
  const char* const map = R"({"eos_token": "</s>", "bos_token": ""})";
  const auto ends = [&](const char* config) { return Tokenizer::load(json, config, map)->eos(); };
  EXPECT_EQ(ends(R"({"eos_token": "<s>"})"), 2);
  EXPECT_EQ(ends(R"({"eos_token": "<s>", "added_tokens_decoder": {}})"), 1);
  EXPECT_EQ(ends(R"({"eos_token": null, "added_tokens_decoder": {}})"), 2);
  EXPECT_EQ(Tokenizer::load(json, R"({"bos_token": "<s>"})", map)->bos(), 1);
  EXPECT_EQ(Tokenizer::load(json, R"({"eos_token": "<s>", "eos_token": "</s>"})")->eos(),
            2);  // the last, as Python has it
}

TEST(Tokenizer, AddsTokensThatOtherFilesNumber) {
  const std::string json = SmallTokenizer::letters().json();  // eight tokens
  const std::string decoder =
      R"({"eos_token": "<end>", "added_tokens_decoder": {"9": {"content": "<end>", "special": true},)"
      R"( "1": {"content": "<taken>"}, "8": {"content": "ab"}, "10": {"content": "<ab>", "special": false}}})";
  const char* const list = R"({"<older>": 8, "<end>": 11, "a": 12, "<b>": 2})";
  const auto named = Tokenizer::load(json, decoder, "", list);
  EXPECT_EQ(named->eos(), 9);
  EXPECT_THAT(named->encode("a<end>b<ab>", false), ElementsAre(0, 9, 1, 10));
  EXPECT_TRUE(named->is_special(9));
  EXPECT_EQ(named->id_of("<taken>"), std::nullopt);
  EXPECT_EQ(named->id_of("ab"), 5);
  EXPECT_EQ(named->id_of("<older>"), std::nullopt);
  const auto listed = Tokenizer::load(json, "{}", "", list);
  EXPECT_THAT(listed->encode("a<older><end>", false), ElementsAre(0, 8, 11));
  EXPECT_EQ(listed->id_of("a"), 0);
  EXPECT_EQ(listed->id_of("<b>"), std::nullopt);
  for (const char* odd :
       {R"({"x": {"content": "<x>"}})", R"({"-1": {"content": "<x>"}})", R"({"1048576": {"content": "<x>"}})"}) {
    expect_refused(SmallTokenizer::letters(), "added_tokens_decoder",
                   std::string(R"({"added_tokens_decoder": )") + odd + "}");
  }
}

TEST(Tokenizer, RefusesByNameWhatItDoesNotKnow) {
  const auto with = [](std::string SmallTokenizer::*section, const char* value) {
    SmallTokenizer small = SmallTokenizer::letters();
    small.*section = value;
    return small;
  };
  using S = SmallTokenizer;
  expect_refused(with(&S::normalizer, R"({"type": "Precompiled", "precompiled_charsmap": ""})"), "'Precompiled'");
  expect_refused(with(&S::normalizer, R"({"type": "Sequence", "normalizers": [{"type": "Nmt"}]})"),
                 "normalizer: the type 'Nmt'");
  expect_refused(with(&S::pre_tokenizer, R"({"type": "BertPreTokenizer"})"), "'BertPreTokenizer'");
  expect_refused(
      with(&S::pre_tokenizer,
           R"~({"type": "Split", "pattern": {"Regex": "a(?<=b)"}, "behavior": "Isolated", "invert": false})~"),
      "'a(?<=b)'");
  expect_refused(with(&S::pre_tokenizer,
                      R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Doubled", "invert": false})"),
                 "'Doubled'");
  expect_refused(with(&S::pre_tokenizer, R"({"type": "Split", "behavior": "Isolated"})"), "'pattern' is missing");
  expect_refused(with(&S::pre_tokenizer, R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"})"),
                 "'last'");
  expect_refused(with(&S::pre_tokenizer, R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})"),
                 "contradicts");
  expect_refused(with(&S::post_processor, R"({"type": "RobertaProcessing"})"), "'RobertaProcessing'");
  expect_refused(with(&S::post_processor, R"({"type": "TemplateProcessing", "single": [], "special_tokens": {}})"),
                 "A exactly once");
  expect_refused(with(&S::decoder, R"({"type": "WordPiece"})"), "'WordPiece'");
  expect_refused(with(&S::decoder, R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})"),
                 "decoder");
  expect_refused(with(&S::model_options, R"("dropout": 0.1, )"), "dropout");
  expect_refused(with(&S::model_options, R"("end_of_word_suffix": "</w>", )"), "end_of_word_suffix");
  expect_refused(with(&S::model_options, R"("fuse_unk": 3, )"), "fuse_unk: expected true or false");
  expect_refused(with(&S::merges, R"(["a b c"])"), "not two tokens");
  expect_refused(with(&S::merges, R"([["a"]])"), "not two tokens");
  expect_refused(with(&S::merges, R"([["a", "b", "c"]])"), "not two tokens");
  expect_refused(with(&S::added_tokens, R"([{"id": 4, "content": "a"}])"), "'a' has the id 4");
  expect_refused(with(&S::added_tokens, R"([{"id": 1, "content": "x"}])"), "'x' has the id 1");
  expect_refused(with(&S::added_tokens, R"([{"id": 8, "content": "x"}, {"id": 8, "content": "y"}])"), "has the id 8");
  expect_refused(with(&S::added_tokens, R"([{"id": 8, "content": "x"}, {"id": 9, "content": "x"}])"), "occurs twice");
  expect_refused(with(&S::added_tokens, R"([{"id": 4000000000, "content": "x"}])"), "2^20");
  expect_refused(with(&S::added_tokens, R"([{"id": 1048576, "content": "x"}])"), "2^20");
}

TEST(Tokenizer, RefusesOtherModelsVersionsAndFiles) {
  EXPECT_THROW(Tokenizer::load(R"({"model": {"type": "WordPiece", "vocab": {}}})", ""), StartError);
  EXPECT_THROW(Tokenizer::load(R"({"model": {"type": "Unigram", "vocab": []}})", ""), StartError);
  EXPECT_THROW(Tokenizer::load(R"({"version": "2.0", "model": {"type": "BPE", "vocab": {}, "merges": []}})", ""),
               StartError);
  EXPECT_THROW(Tokenizer::load("{}", ""), StartError);
  EXPECT_THROW(Tokenizer::load("[]", ""), StartError);
  EXPECT_THROW(Tokenizer::load("", ""), StartError);
  EXPECT_NO_THROW(Tokenizer::load(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})", ""));
}

// Deep nesting is for the parser to refuse, not for our stack to survive.
TEST(Tokenizer, RefusesSequencesNestedWithoutEnd) {
  SmallTokenizer small = SmallTokenizer::letters();
  std::string open, close;
  for (int i = 0; i < 100'000; ++i) {
    open += R"({"type": "Sequence", "normalizers": [)";
    close += "]}";
  }
  small.normalizer = open + close;
  expect_refused(small, "not JSON");
}

TEST(Tokenizer, EncodesAMegabyteOfOneLetterAsItsDefinitionSays) {
  SmallTokenizer small;
  small.vocabulary = {"a"};
  small.merges = "[";
  for (std::string token = "a"; token.size() < 1024; token += token) {
    small.vocabulary.push_back(token + token);
    small.merges += std::string(small.merges.size() > 1 ? ", " : "") + "[\"" + token + "\", \"" + token + "\"]";
  }
  small.merges += "]";
  const std::vector<TokenId> ids = small.load()->encode(std::string(1 << 20, 'a'), false);
  EXPECT_EQ(ids, std::vector<TokenId>(1024, 10));
}

TEST(Tokenizer, EndsOnceThereAreMoreTokensThanWanted) {
  const auto tokenizer = SmallTokenizer::letters().load();
  const std::string text(1000, 'a');
  const std::vector<TokenId> all = tokenizer->encode(text, false);
  for (const std::size_t most : {std::size_t{0}, std::size_t{1}, all.size() - 1, all.size(), all.size() + 1}) {
    const std::vector<TokenId> some = tokenizer->encode(text, false, {.max_tokens = most});
    EXPECT_EQ(some.size() > most, all.size() > most) << most;
    EXPECT_TRUE(some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin())) << most;
  }
}

TEST(Tokenizer, EndsWithItsAllowance) {
  const auto tokenizer = SmallTokenizer::letters().load();
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += i % 3 == 0 ? "ab" : "c";
  Allowance patient;
  EXPECT_EQ(tokenizer->encode(text, false, {.allowance = &patient}), tokenizer->encode(text, false));
  Allowance dropped(std::chrono::hours(1), [] { return true; });
  EXPECT_LT(tokenizer->encode(text, false, {.allowance = &dropped}).size(), tokenizer->encode(text, false).size());
  EXPECT_EQ(dropped.end(), Allowance::End::kDropped);
}

// Refusing a text by its bytes must refuse none that fits.
TEST(Tokenizer, NoTextHasFewerTokensThanItsBytesSay) {
  const auto tokenizer = Tokenizer::load(quire::test::source_text("models/stories/tokenizer.json"),
                                         quire::test::source_text("models/stories/tokenizer_config.json"));
  EXPECT_GT(tokenizer->least_tokens(1'000'000), 0u);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    const bool tokens = random() % 2 == 0;
    for (std::size_t length = random() % 200; text.size() < length;) {
      text += tokens
                  ? std::string(tokenizer->decode(std::vector<TokenId>{static_cast<TokenId>(random() % 4096)}, false))
                  : std::string(1, static_cast<char>(random()));
    }
    ASSERT_GE(tokenizer->encode(text, false).size(), tokenizer->least_tokens(text.size())) << text;
  }
  // Where text can vanish nothing is said.
  SmallTokenizer strips = SmallTokenizer::letters();
  strips.normalizer = R"({"type":"Strip","strip_left":true,"strip_right":true})";
  EXPECT_EQ(strips.load()->least_tokens(1'000'000), 0u);
}

}  // namespace
}  // namespace quire::text
