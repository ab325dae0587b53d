#include "api/generation/choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/generation/completion_rig.h"
#include "tests/core/text/small_tokenizer.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;

class ChoiceTest : public test::CompletionRig {
 protected:
  json::value answer(const std::string& fields, const std::string& text, flow::Finish last) {
    submissions_.clear();
    auto completion = start(R"({"prompt":"Once","max_tokens":60,)" + fields + "}");
    say_text(0, text, last);
    return choice_of(*completion);
  }
  static json::value choice_of(Generation& completion) { return whole(completion).at("choices").at(0); }
  TokenId id(const std::string& text) const {
    const std::vector<TokenId> ids = services_.tokenizer->encode(text, false);
    EXPECT_EQ(ids.size(), 1u) << text;
    return ids[0];
  }
};

TEST_F(ChoiceTest, AStopStringStaysWhereThatIsAsked) {
  const std::string stop = R"("stop":["dragon","king"],"include_stop_str_in_output":)";
  const json::value with = answer(stop + "true", " the old king and", flow::Finish::kNone);
  EXPECT_EQ(with.at("text"), " the old king");
  EXPECT_EQ(with.at("stop_reason"), "king");
  EXPECT_EQ(answer(stop + "false", " the old king and", flow::Finish::kNone).at("text"), " the old ");
}

TEST_F(ChoiceTest, AStopTokenIsReportedAsTheReasonAndItsTextOnlyOnRequest) {
  const std::string ids = "\"stop_token_ids\":[" + std::to_string(id(" king")) + "]";
  const json::value plain = answer(ids, " the old king", flow::Finish::kStop);
  EXPECT_EQ(plain.at("text"), " the old");
  EXPECT_EQ(plain.at("finish_reason"), "stop");
  EXPECT_EQ(plain.at("stop_reason"), id(" king"));
  const json::value kept = answer(ids + R"(,"include_stop_str_in_output":true)", " the old king", flow::Finish::kStop);
  EXPECT_EQ(kept.at("text"), " the old king");
}

TEST_F(ChoiceTest, TheModelsOwnEndHasNoReason) {
  auto completion = start(R"({"prompt":"Once","max_tokens":60,"stop_token_ids":[0,7]})");
  EXPECT_EQ(submissions_[0].request.stop_tokens, (std::vector<TokenId>{0, 7}));
  say(0, 0, flow::Finish::kStop);
  EXPECT_TRUE(choice_of(*completion).at("stop_reason").is_null());
}

TEST_F(ChoiceTest, ATokenThatEndsByLengthIsNoStop) {
  const json::value one = answer("\"stop_token_ids\":[7]", " the old", flow::Finish::kLength);
  EXPECT_EQ(one.at("finish_reason"), "length");
  EXPECT_TRUE(one.at("stop_reason").is_null());
}

TEST_F(ChoiceTest, WhatCompletesAGrammarIsPartOfTheAnswer) {
  const json::value one = answer("\"seed\":1", " the old king", flow::Finish::kComplete);
  EXPECT_EQ(one.at("text"), " the old king");
  EXPECT_EQ(one.at("finish_reason"), "stop");
  EXPECT_TRUE(one.at("stop_reason").is_null());
}

TEST_F(ChoiceTest, StopStringsAreNotLookedForInTheFirstTokens) {
  const std::string text = " the old king and the old king and";
  const auto tokens = [&](const std::string& part) { return services_.tokenizer->encode(part, false).size(); };
  const std::size_t first = tokens(" the old king");
  for (const std::size_t least : {first - 1, first, first + 1}) {
    const json::value one =
        answer(R"("stop":" king","min_tokens":)" + std::to_string(least), text, flow::Finish::kNone);
    EXPECT_EQ(one.at("text"), least < first ? " the old" : " the old king and the old") << least;
  }
}

TEST_F(ChoiceTest, SpecialTokensAddTextOnlyWhereThatIsAsked) {
  const auto said = [this](const std::string& fields) {
    submissions_.clear();
    auto completion = start(R"({"prompt":"Once","max_tokens":3,"ignore_eos":true,)" + fields + "}");
    say(0, id(" old"));
    say(0, 0);
    say(0, id(" king"), flow::Finish::kLength);
    return choice_of(*completion).at("text");
  };
  EXPECT_EQ(said(R"("skip_special_tokens":true)"), " old king");
  EXPECT_EQ(said(R"("skip_special_tokens":false)"), " old<|endoftext|> king");
}

TEST_F(ChoiceTest, AStopStringThatByteTokensSpellEndsTheAnswerAtItsLastByte) {
  services_.tokenizer = text::SmallTokenizer::sentencepiece().load();
  const auto said = [this](const std::string& stop, const std::vector<TokenId>& ids) {
    submissions_.clear();
    auto completion = start(R"({"prompt":"a","max_tokens":60,"stop":")" + stop + "\"}");
    for (const TokenId id : ids) say(0, id);
    const json::value body = whole(*completion);
    return std::string(body.at("choices").at(0).at("text").as_string()) + "|" +
           std::to_string(body.at("usage").at("completion_tokens").to_number<int>());
  };
  constexpr TokenId kA = 260, kLineBreak = 3 + '\n';
  EXPECT_EQ(said("\\n", {kA, kLineBreak, kA, kA}), "a|2");
  EXPECT_EQ(said("a\\n\\n", {kA, kLineBreak, kA, kLineBreak, kLineBreak, kA}), "a\n|5");
  EXPECT_EQ(said("é", {kA, 3 + 0xC3, 3 + 0xA9, 3 + 0xFF}), "a|3");
}

TEST_F(ChoiceTest, TokensAreEmittedUpToTheOneThatCompletesAStop) {
  auto completion = start(R"({"prompt":"Once","max_tokens":60,"stop":"old king","return_token_ids":true})");
  say_text(0, " the old king and", flow::Finish::kNone);
  const json::value body = whole(*completion);
  const std::vector<TokenId> ids = services_.tokenizer->encode(" the old king", false);
  EXPECT_EQ(body.at("choices").at(0).at("text"), " the ");
  EXPECT_EQ(json::value_to<std::vector<TokenId>>(body.at("choices").at(0).at("token_ids")), ids);
  EXPECT_EQ(body.at("usage").at("completion_tokens").to_number<std::size_t>(), ids.size());
}

}  // namespace
}  // namespace quire::api::test
