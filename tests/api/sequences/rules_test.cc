#include "api/sequences/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

class RulesTest : public test::CompletionRig {
 protected:
  std::shared_ptr<const sample::Rules> rules(const std::string& fields) {
    submissions_.clear();
    const auto completion = start(R"({"prompt":"Once","max_tokens":9,)" + fields + "}");
    return submissions_.empty() ? nullptr : submissions_[0].request.rules;
  }
  std::vector<TokenId> ids(const std::string& text) const { return services_.tokenizer->encode(text, false); }
};

TEST_F(RulesTest, NothingIsAskedByNeutralValues) {
  EXPECT_EQ(
      rules(R"("presence_penalty":0,"frequency_penalty":0.0,"repetition_penalty":1,"logit_bias":{},"bad_words":[],)"
            R"("min_tokens":0)"),
      nullptr);
}

TEST_F(RulesTest, HandsOnWhatIsAsked) {
  const auto one = rules(R"("presence_penalty":-2,"frequency_penalty":0.5,"repetition_penalty":1.5,"min_tokens":9,)"
                         R"("logit_bias":{"7":-1},"allowed_token_ids":[7,8])");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->presence_penalty, -2.0f);
  EXPECT_EQ(one->frequency_penalty, 0.5f);
  EXPECT_EQ(one->repetition_penalty, 1.5f);
  EXPECT_EQ(one->min_tokens, 9u);
  EXPECT_EQ(one->bias.at(0).token, 7);
  EXPECT_EQ(one->allowed, (std::vector<TokenId>{7, 8}));
}

TEST_F(RulesTest, ChoicesShareTheirRules) {
  const auto completion = start(R"({"prompt":["a","b"],"n":2,"presence_penalty":1})");
  ASSERT_EQ(submissions_.size(), 4u);
  for (const bridge::Submission& one : submissions_) EXPECT_EQ(one.request.rules, submissions_[0].request.rules);
}

TEST_F(RulesTest, ABadWordIsForbiddenInsideATextAndAsAWord) {
  for (const char* spelling :
       {R"("bad_words":["king"])", R"("bad_words":[" king"])", R"("bad_words":["king"," king"])"}) {
    const auto words = rules(spelling)->bad_words;
    ASSERT_EQ(words.size(), 2u) << spelling;
    EXPECT_NE(std::find(words.begin(), words.end(), ids("king")), words.end());
    EXPECT_NE(std::find(words.begin(), words.end(), ids(" king")), words.end());
  }
}

TEST_F(RulesTest, SomethingMustBeLeftToSay) {
  const std::string king = std::to_string(ids(" king").at(0));
  ASSERT_EQ(ids(" king").size(), 1u);
  const std::string start = R"({"prompt":"Once","max_tokens":9,"allowed_token_ids":)";
  EXPECT_EQ(refusal(start + "[" + king + R"(],"bad_words":["king"]})", 400).at("param"), "allowed_token_ids");
  EXPECT_EQ(refusal(start + R"([0],"min_tokens":1})", 400).at("param"), "allowed_token_ids");
  EXPECT_EQ(refusal(start + R"([0,7],"stop_token_ids":[7],"min_tokens":1})", 400).at("param"), "allowed_token_ids");
  this->start(start + R"([0]})");
  this->start(start + R"([0],"min_tokens":1,"ignore_eos":true})");
  this->start(start + "[7," + king + R"(],"bad_words":["king"]})");
}

TEST_F(RulesTest, MinTokensAreNoMoreThanMaxTokens) {
  for (const int least : {8, 9}) start(R"({"prompt":"a","max_tokens":9,"min_tokens":)" + std::to_string(least) + "}");
  EXPECT_EQ(refusal(R"({"prompt":"a","max_tokens":9,"min_tokens":10})", 400).at("param"), "min_tokens");
  start(R"({"prompt":"a","min_tokens":16})");
  EXPECT_EQ(refusal(R"({"prompt":"a","min_tokens":17})", 400).at("param"), "min_tokens") << "16 is the default";
}

}  // namespace
}  // namespace quire::api::test
