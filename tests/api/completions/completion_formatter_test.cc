#include "api/completions/completion_formatter.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/api/generation/completion_rig.h"
#include "tests/core/text/small_tokenizer.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;
using flow::Candidate;
using flow::Finish;

class CompletionFormTest : public test::CompletionRig {
 protected:
  std::vector<TokenId> ids(const std::string& text) const { return services_.tokenizer->encode(text, false); }
  TokenId id(const std::string& text) const {
    EXPECT_EQ(ids(text).size(), 1u) << text;
    return ids(text)[0];
  }
  void say_scored(std::size_t i, TokenId token, float logprob, std::vector<Candidate> top,
                  Finish finish = Finish::kNone) {
    submissions_[i].stream->push({token, finish, logprob}, top);
  }
  // -1 for token 1 of the prompt, -2 for token 2 and so on, each the second likeliest behind `best`.
  void score_prompt(std::size_t i, TokenId best) {
    bridge::PromptScores& scores = *submissions_[i].stream->scores_to_write();
    const std::vector<TokenId>& prompt = submissions_[i].request.prompt;
    for (std::size_t k = 0; k + 1 < prompt.size(); ++k) {
      scores.logprobs[k] = -1.0f - static_cast<float>(k);
      scores.ranks[k] = 2;
      const Candidate top[] = {{best, -0.25f}, {prompt[k + 1], scores.logprobs[k]}, {-1, 0.0f}};
      for (std::size_t t = 0; t < scores.num_top; ++t)
        scores.top[k * scores.num_top + t] = top[std::min<std::size_t>(t, 2)];
    }
  }
  json::value choice_of(Generation& completion) const { return whole(completion).at("choices").at(0); }
};

// ---- long answers

std::string repeated(const std::string& id, int times) {
  std::string list = id;
  for (int i = 1; i < times; ++i) list += "," + id;
  return list;
}

// An answer can tell a thousand times as much of its prompt as the prompt was.
TEST_F(CompletionFormTest, ALongAnswerIsWrittenInPartsThatAreTheAnswer) {
  for (const bool stream : {false, true}) {
    auto completion =
        start(R"({"prompt":[)" + repeated("300", 500) + R"(],"max_tokens":1,"echo":true,"logprobs":20,)" +
              R"("prompt_logprobs":20,"return_token_ids":true,"stream":)" + (stream ? "true}" : "false}"));
    bridge::PromptScores& scores = *submissions_.back().stream->scores_to_write();
    std::ranges::fill(scores.logprobs, -1.0f);
    std::ranges::fill(scores.ranks, 1u);
    for (std::size_t i = 0; i < scores.top.size(); ++i) {
      scores.top[i] = {static_cast<TokenId>(301 + i % scores.num_top), -1.0f};
    }
    say_scored(submissions_.size() - 1, 302, -1.0f, {}, Finish::kLength);
    completion->take();
    std::string text = stream ? completion->events() : completion->whole().body;
    std::size_t num_parts = 1;
    EXPECT_TRUE(completion->has_more());
    for (; completion->has_more(); ++num_parts) {
      const std::string part = completion->more();
      EXPECT_LT(part.size(), kPartBytes + 10'000);
      text += part;
    }
    EXPECT_GE(num_parts, text.size() / (kPartBytes + 10'000));
    const json::value answer = json::parse(stream ? test::events_of(text).at(0) : text);
    const json::value& choice = answer.at("choices").at(0);
    EXPECT_EQ(choice.at("logprobs").at("tokens").as_array().size(), 501u);
    EXPECT_EQ(choice.at("prompt_logprobs").as_array().size(), 500u);
    EXPECT_EQ(choice.at("prompt_token_ids").as_array().size(), 500u);
  }
}

TEST_F(CompletionFormTest, WhatEveryAnswerRepeatsOfThePromptHasALimitAndOneAnswerHasNone) {
  services_.max_model_len = 100'000;
  // 4,000 tokens with 20 others in the place of each: eleven answers repeat as much as may be.
  const std::string scored = R"({"prompt":[)" + repeated("300", 4000) + R"(],"max_tokens":1,"prompt_logprobs":20,"n":)";
  const json::value error = refusal(scored + "12}", 400);
  EXPECT_EQ(error.at("param"), "n");
  EXPECT_NE(error.at("message").as_string().find("67108864"), std::string::npos) << error;
  for (const char* n : {"1}", "11}"}) EXPECT_NE(start(scored + n), nullptr);
}

// ---- log probabilities

TEST_F(CompletionFormTest, LogprobsAreFourListsOfOneLength) {
  auto completion = start(R"({"prompt":"Once","max_tokens":3,"logprobs":2})");
  EXPECT_TRUE(submissions_[0].request.sampling.logprob);
  EXPECT_EQ(submissions_[0].request.sampling.num_top, 2u);
  EXPECT_FALSE(submissions_[0].request.scores_prompt);
  say_scored(0, id(" old"), -0.5f, {{id(" old"), -0.5f}, {id(" king"), -1.5f}});
  say_scored(0, id(" a"), -7.0f, {{id(" old"), -0.125f}, {id(" king"), -2.0f}});
  say_scored(0, id(" king"), -0.75f, {{id(" king"), -0.75f}, {id(" old"), -std::numeric_limits<float>::infinity()}},
             Finish::kLength);
  const json::value logprobs = choice_of(*completion).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"), json::parse(R"([" old"," a"," king"])"));
  EXPECT_EQ(logprobs.at("token_logprobs"), json::parse("[-0.5,-7,-0.75]"));
  EXPECT_EQ(logprobs.at("text_offset"), json::parse("[0,4,6]"));
  EXPECT_EQ(logprobs.at("top_logprobs").at(0), json::parse(R"({" old":-0.5," king":-1.5})"));
  EXPECT_EQ(logprobs.at("top_logprobs").at(1), json::parse(R"({" old":-0.125," king":-2," a":-7})"))
      << "the chosen one besides the two likeliest";
  EXPECT_EQ(logprobs.at("top_logprobs").at(2), json::parse(R"({" king":-0.75," old":-9999})"));
}

TEST_F(CompletionFormTest, ZeroLogprobsAreTheTokensAlone) {
  auto completion = start(R"({"prompt":"Once","max_tokens":1,"logprobs":0})");
  EXPECT_TRUE(submissions_[0].request.sampling.logprob);
  EXPECT_EQ(submissions_[0].request.sampling.num_top, 0u);
  say_scored(0, id(" old"), -0.5f, {}, Finish::kLength);
  EXPECT_EQ(
      choice_of(*completion).at("logprobs"),
      json::parse(R"({"tokens":[" old"],"token_logprobs":[-0.5],"top_logprobs":[{" old":-0.5}],"text_offset":[0]})"));
}

TEST_F(CompletionFormTest, TokensCanBeNamedByTheirIds) {
  auto completion = start(R"({"prompt":"Once","max_tokens":1,"logprobs":1,"return_tokens_as_token_ids":true})");
  say_scored(0, 7, -0.5f, {{9, -0.25f}}, Finish::kLength);
  const json::value logprobs = choice_of(*completion).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"), json::parse(R"(["token_id:7"])"));
  EXPECT_EQ(logprobs.at("top_logprobs"), json::parse(R"([{"token_id:9":-0.25,"token_id:7":-0.5}])"));
}

TEST_F(CompletionFormTest, APieceOfACharacterKeepsItsPlaceAndAKeyStandsOnce) {
  const std::vector<TokenId> bytes = ids("漢");
  ASSERT_GT(bytes.size(), 1u);
  auto completion = start(R"({"prompt":"Once","max_tokens":9,"logprobs":2})");
  for (const TokenId byte : bytes) say_scored(0, byte, -2.0f, {{bytes[0], -0.5f}, {bytes[1], -1.0f}});
  say_scored(0, id(" old"), -1.0f, {{id(" old"), -1.0f}, {id(" king"), -2.0f}}, Finish::kLength);
  const json::value one = choice_of(*completion);
  EXPECT_EQ(one.at("text"), "漢 old");
  const json::array& offsets = one.at("logprobs").at("text_offset").as_array();
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(offsets[i], 0);
  EXPECT_EQ(offsets[bytes.size()], 1);
}

TEST_F(CompletionFormTest, TheEndThatIsATokenHasItsLogProbability) {
  auto completion = start(R"({"prompt":"Once","max_tokens":9,"logprobs":0})");
  say_scored(0, id(" old"), -0.5f, {});
  say_scored(0, 0, -0.25f, {}, Finish::kStop);
  const json::value logprobs = choice_of(*completion).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"), json::parse(R"([" old","<|endoftext|>"])"));
  EXPECT_EQ(logprobs.at("text_offset"), json::parse("[0,4]"));
}

// ---- echo and scores

TEST_F(CompletionFormTest, AnEchoComesFirst) {
  auto text = start(R"({"prompt":["Once upon","The"],"max_tokens":3,"echo":true})");
  auto tokens = start(R"({"prompt":[7,8],"max_tokens":3,"echo":true})");
  EXPECT_FALSE(submissions_[0].request.scores_prompt);
  say_text(0, " a king", Finish::kLength);
  say_text(1, " old king", Finish::kLength);
  say_text(2, " old", Finish::kLength);
  const json::value body = whole(*text);
  EXPECT_EQ(body.at("choices").at(0).at("text"), "Once upon a king");
  EXPECT_EQ(body.at("choices").at(1).at("text"), "The old king");
  EXPECT_TRUE(body.at("choices").at(0).at("logprobs").is_null());
  const std::vector<TokenId> given = {7, 8};
  EXPECT_EQ(choice_of(*tokens).at("text").as_string(), services_.tokenizer->decode(given, true) + " old");
}

TEST_F(CompletionFormTest, AnEchoWithLogprobsScoresThePrompt) {
  const std::vector<TokenId> prompt = ids(" the old king");
  ASSERT_EQ(prompt.size(), 3u);
  auto completion = start(R"({"prompt":" the old king","max_tokens":1,"echo":true,"logprobs":1})");
  ASSERT_TRUE(submissions_[0].request.scores_prompt);
  EXPECT_EQ(submissions_[0].request.sampling.num_top, 1u);
  score_prompt(0, id(" a"));
  say_scored(0, id(" a"), -0.5f, {{id(" a"), -0.5f}}, Finish::kLength);
  const json::value one = choice_of(*completion);
  EXPECT_EQ(one.at("text"), " the old king a");
  const json::value& logprobs = one.at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"), json::parse(R"([" the"," old"," king"," a"])"));
  EXPECT_EQ(logprobs.at("token_logprobs"), json::parse("[null,-1,-2,-0.5]"));
  EXPECT_EQ(logprobs.at("top_logprobs"),
            json::parse(R"([null,{" a":-0.25," old":-1},{" a":-0.25," king":-2},{" a":-0.5}])"));
  EXPECT_EQ(logprobs.at("text_offset"), json::parse("[0,4,8,13]"));
  EXPECT_FALSE(one.as_object().contains("prompt_logprobs")) << "it was not asked for by that name";
}

TEST_F(CompletionFormTest, ScoringIsAnAnswerWithoutAToken) {
  auto completion = start(R"({"prompt":" the old king","max_tokens":0,"echo":true,"logprobs":0})");
  EXPECT_EQ(submissions_[0].request.max_tokens, 0u);
  ASSERT_TRUE(submissions_[0].request.scores_prompt);
  score_prompt(0, 5);
  submissions_[0].stream->push({-1, Finish::kScored});
  const json::value body = whole(*completion);
  const json::value& one = body.at("choices").at(0);
  EXPECT_EQ(one.at("text"), " the old king");
  EXPECT_EQ(one.at("finish_reason"), "length");
  EXPECT_EQ(one.at("logprobs").at("token_logprobs"), json::parse("[null,-1,-2]"));
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 0);
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 3);
}

TEST_F(CompletionFormTest, ScoringTakesAPromptAsLongAsTheModel) {
  const auto scored = [](std::size_t n) {
    std::string list = "[7";
    for (std::size_t i = 1; i < n; ++i) list += ",7";
    return R"({"prompt":)" + list + R"(],"max_tokens":0,"echo":true})";
  };
  for (const std::size_t n : {511, 512}) start(scored(n));
  EXPECT_EQ(refusal(scored(513), 400).at("param"), "prompt");
}

TEST_F(CompletionFormTest, PromptLogprobsHaveRanksAndIds) {
  auto completion = start(R"({"prompt":" the old king","max_tokens":1,"prompt_logprobs":2})");
  ASSERT_TRUE(submissions_[0].request.scores_prompt);
  EXPECT_EQ(submissions_[0].request.sampling.num_top, 2u);
  EXPECT_FALSE(submissions_[0].request.sampling.logprob) << "the answer's are not asked for";
  score_prompt(0, id(" a"));
  say(0, id(" a"), Finish::kLength);
  const json::value one = choice_of(*completion);
  EXPECT_TRUE(one.at("logprobs").is_null());
  const json::array& scores = one.at("prompt_logprobs").as_array();
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_TRUE(scores[0].is_null());
  const auto entry = [this](const char* text) { return std::to_string(id(text)); };
  EXPECT_EQ(scores[1], json::parse("{\"" + entry(" old") + R"(":{"logprob":-1,"rank":2,"decoded_token":" old"},")" +
                                   entry(" a") + R"(":{"logprob":-0.25,"rank":1,"decoded_token":" a"}})"));
  EXPECT_EQ(scores[2].at(entry(" king")).at("rank"), 2);
}

TEST_F(CompletionFormTest, OnlyTheFirstOfSeveralChoicesScoresThePrompt) {
  auto completion = start(R"({"prompt":" the old","n":2,"max_tokens":1,"echo":true,"logprobs":0})");
  ASSERT_EQ(submissions_.size(), 2u);
  EXPECT_TRUE(submissions_[0].request.scores_prompt);
  EXPECT_FALSE(submissions_[1].request.scores_prompt);
  score_prompt(0, 5);
  submissions_[1].stream->timeline()->note_start(TimePoint{}, 1);
  say(1, id(" a"), Finish::kLength);
  say(0, id(" a"), Finish::kLength);
  const json::value body = whole(*completion);
  for (const json::value& choice : body.at("choices").as_array()) {
    EXPECT_EQ(choice.at("logprobs").at("token_logprobs").as_array().size(), 3u);
  }
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("cached_tokens"), 0);
}

TEST_F(CompletionFormTest, MaxTokensOfZeroNeedsSomethingToReturn) {
  EXPECT_EQ(refusal(R"({"prompt":"a","max_tokens":0})", 400).at("param"), "max_tokens");
  EXPECT_EQ(refusal(R"({"prompt":"a","max_tokens":0,"logprobs":1})", 400).at("param"), "max_tokens");
  start(R"({"prompt":"a","max_tokens":0,"echo":true})");
  start(R"({"prompt":"a","max_tokens":0,"prompt_logprobs":0})");
}

// ---- streams

// However the engine's tokens fall into wake-ups, the pieces say what the whole answer says, token by token.
TEST_F(CompletionFormTest, PiecesOfLogprobsAddUpHoweverTheyAreSplit) {
  const std::string text = " was a king 😀 who had 漢字.";
  const std::vector<TokenId> said = ids(text);
  const std::string fields =
      R"("prompt":" the old king","echo":true,"logprobs":1,"prompt_logprobs":0,"return_token_ids":true,"max_tokens":60,"seed":1)";
  const auto speak = [&](std::size_t i) {
    const TokenId token = i < said.size() ? said[i] : 0;
    say_scored(0, token, -0.25f * static_cast<float>(i), {{7, -0.125f}},
               i < said.size() ? Finish::kNone : Finish::kStop);
  };
  auto plain = start("{" + fields + "}");
  score_prompt(0, 9);
  for (std::size_t i = 0; i <= said.size(); ++i) speak(i);
  const json::value expected = choice_of(*plain);
  for (std::size_t split = 1; split <= said.size() + 1; ++split) {
    submissions_.clear();
    auto streamed = start("{" + fields + R"(,"stream":true})");
    score_prompt(0, 9);
    std::string sent;
    for (std::size_t i = 0; i <= said.size(); ++i) {
      speak(i);
      if ((i + 1) % split == 0) sent += test::take_events(*streamed);
    }
    sent += test::take_events(*streamed);
    json::object sum{{"text", ""},
                     {"tokens", json::array()},
                     {"token_logprobs", json::array()},
                     {"top_logprobs", json::array()},
                     {"text_offset", json::array()},
                     {"token_ids", json::array()}};
    const std::vector<std::string> events = test::events_of(sent);
    for (const std::string& event : events) {
      if (event == "[DONE]") continue;
      const json::value choice = json::parse(event).at("choices").at(0);
      const bool first = event == events.front();
      EXPECT_EQ(choice.as_object().contains("prompt_logprobs"), first);
      EXPECT_EQ(choice.as_object().contains("prompt_token_ids"), first);
      if (first) {
        EXPECT_EQ(choice.at("prompt_logprobs"), expected.at("prompt_logprobs"));
      }
      sum["text"] = std::string(sum["text"].as_string()) + std::string(choice.at("text").as_string());
      for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
        for (const json::value& one : choice.at("logprobs").at(list).as_array()) sum[list].as_array().push_back(one);
      }
      for (const json::value& one : choice.at("token_ids").as_array()) sum["token_ids"].as_array().push_back(one);
    }
    EXPECT_EQ(sum["text"], expected.at("text")) << split;
    EXPECT_EQ(sum["token_ids"], expected.at("token_ids")) << split;
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      EXPECT_EQ(sum[list], expected.at("logprobs").at(list)) << list << split;
    }
  }
}

TEST_F(CompletionFormTest, AStreamWaitsForTheScoresOfItsPrompt) {
  auto completion = start(R"({"prompt":" the old","n":2,"max_tokens":2,"echo":true,"logprobs":0,"stream":true})");
  say(1, id(" a"), Finish::kNone);
  EXPECT_EQ(test::take_events(*completion), "") << "choice 1 speaks first; choice 0 has the scores";
  score_prompt(0, 5);
  say(0, id(" a"), Finish::kNone);
  EXPECT_EQ(test::events_of(test::take_events(*completion)).size(), 2u);
}

TEST_F(CompletionFormTest, UsageCanComeWithEveryEvent) {
  auto completion = start(R"({"prompt":" the old","max_tokens":2,"stream":true,)"
                          R"("stream_options":{"include_usage":true,"continuous_usage_stats":true}})");
  say(0, id(" a"));
  json::value event = json::parse(test::events_of(test::take_events(*completion)).at(0));
  EXPECT_EQ(event.at("usage"), json::parse(R"({"prompt_tokens":2,"completion_tokens":1,"total_tokens":3})"));
  say(0, id(" king"), Finish::kLength);
  event = json::parse(test::events_of(test::take_events(*completion)).at(0));
  EXPECT_EQ(event.at("usage").at("completion_tokens"), 2);
}

// ---- prompts

TEST_F(CompletionFormTest, APromptIsCutToItsLastTokens) {
  const std::vector<TokenId> prompt = ids(" the old king");
  start(R"({"prompt":" the old king","truncate_prompt_tokens":2})");
  EXPECT_EQ(submissions_.back().request.prompt, (std::vector<TokenId>{prompt[1], prompt[2]}));
  start(R"({"prompt":" the old king","truncate_prompt_tokens":3})");
  EXPECT_EQ(submissions_.back().request.prompt, prompt);
  std::string list = "[7";
  for (int i = 1; i < 600; ++i) list += ",7";
  start(R"({"prompt":)" + list + R"(,9],"truncate_prompt_tokens":-1,"max_tokens":12})");
  EXPECT_EQ(submissions_.back().request.prompt.size(), 500u);
  EXPECT_EQ(submissions_.back().request.prompt.back(), 9);
  auto echoed = start(R"({"prompt":" the old king","truncate_prompt_tokens":1,"echo":true,"max_tokens":1})");
  submissions_.back().stream->push({id(" a"), Finish::kLength});
  EXPECT_EQ(choice_of(*echoed).at("text"), " king a");
}

TEST_F(CompletionFormTest, ATextBeginsAsTheTokenizerBeginsIt) {
  text::SmallTokenizer small = text::SmallTokenizer::sentencepiece();
  small.post_processor = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},)"
                         R"( {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],)"
                         R"( "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}})";
  services_.tokenizer = small.load();
  const auto plain = start(R"({"prompt":"a"})");
  const auto bare = start(R"({"prompt":"a","add_special_tokens":false})");
  EXPECT_EQ(submissions_[0].request.prompt, (std::vector<TokenId>{1, 262}));
  EXPECT_EQ(submissions_[1].request.prompt, (std::vector<TokenId>{262}));
}

TEST_F(CompletionFormTest, AnAnswerKeepsTheBlankThatAPromptDoesNotEndWith) {
  services_.tokenizer = text::SmallTokenizer::sentencepiece().load();
  auto completion = start(R"({"prompt":"a","max_tokens":2,"echo":true})");
  say(0, 262);
  say(0, 262, Finish::kLength);
  EXPECT_EQ(choice_of(*completion).at("text"), "a a a");
}

TEST_F(CompletionFormTest, TokenIdsAreReturnedOnRequest) {
  auto completion = start(R"({"prompt":[7,8],"max_tokens":2,"return_token_ids":true})");
  say(0, 9);
  say(0, 10, Finish::kLength);
  const json::value one = choice_of(*completion);
  EXPECT_EQ(one.at("prompt_token_ids"), json::parse("[7,8]"));
  EXPECT_EQ(one.at("token_ids"), json::parse("[9,10]"));
}

TEST_F(CompletionFormTest, ARequestIdOfTheBodyNamesTheAnswer) {
  auto completion = start(R"({"prompt":"a","max_tokens":1,"request_id":"mine"})");
  say(0, 9, Finish::kLength);
  EXPECT_EQ(whole(*completion).at("id"), "cmpl-mine");
}

TEST_F(CompletionFormTest, UnknownFieldsAreAWarningInTheHead) {
  const auto completion = start(R"({"prompt":"a","frobnicate":1})");
  const std::vector<http::Field> fields = completion->fields();
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].name, "X-Request-Key");
  EXPECT_EQ(fields[1].name, "X-Quire-Warnings");
  EXPECT_EQ(fields[1].value, "unknown fields: frobnicate");
  EXPECT_EQ(start(R"({"prompt":"a"})")->fields().size(), 1u) << "the key alone";
}

TEST_F(CompletionFormTest, WithoutTheTokensASuffixIsRefused) {
  EXPECT_EQ(refusal(R"({"prompt":"a","suffix":"b"})", 400).at("param"), "suffix");
}

}  // namespace
}  // namespace quire::api::test
