#include "api/fields/list_fields.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/completions/completion_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::list_fields_test {
namespace {

using Ids = std::vector<TokenId>;

class ListFieldsTest : public ::testing::Test {
 protected:
  CompletionRequest accepted(const std::string& field) const {
    Result<CompletionRequest> parsed = parse_completion_request(R"({"prompt":"p",)" + field + "}", services_);
    EXPECT_TRUE(parsed.ok()) << field << ": " << parsed.error().message;
    return parsed.ok() ? std::move(*parsed) : CompletionRequest{};
  }
  void refused(const std::string& field, const std::string& param) const {
    const Result<CompletionRequest> parsed = parse_completion_request(R"({"prompt":"p",)" + field + "}", services_);
    ASSERT_FALSE(parsed.ok()) << field;
    EXPECT_EQ(parsed.error().param, param) << field;
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
  }

  test::World world_;
  Services services_ = world_.services();
};

std::string repeated(std::size_t n, const std::string& one) {
  std::string list = "[";
  for (std::size_t i = 0; i < n; ++i) list.append(i == 0 ? "" : ",").append(one);
  return list + "]";
}

TEST_F(ListFieldsTest, BiasesAreSortedByToken) {
  const auto bias = accepted(R"("logit_bias":{"9":-100,"4095":0.5,"0":100})").rules.bias;
  ASSERT_EQ(bias.size(), 3u);
  EXPECT_EQ(bias[0].token, 0);
  EXPECT_EQ(bias[0].add, 100.0f);
  EXPECT_EQ(bias[1].token, 9);
  EXPECT_EQ(bias[2].add, 0.5f);
  EXPECT_FALSE(accepted(R"("logit_bias":{})").has_rules());
}

TEST_F(ListFieldsTest, ABiasIsOfATokenThatThereIs) {
  for (const char* key : {"4096", "-1", "99999999999999999999", "x", "", "1.0", "05", " 5", "+5", "5 "}) {
    refused(std::string(R"("logit_bias":{")") + key + R"(":1})", "logit_bias");
  }
  for (const char* good : {"0", "4094", "4095"}) accepted(std::string(R"("logit_bias":{")") + good + R"(":1})");
  refused(R"("logit_bias":{"5":1,"5":2})", "logit_bias");
  for (const char* value : {"1", "[]", "\"5\"", "true"}) refused(std::string(R"("logit_bias":)") + value, "logit_bias");
}

TEST_F(ListFieldsTest, ABiasHasARange) {
  for (const char* good : {"-100", "-99.999", "0", "99.999", "100"}) {
    accepted(std::string(R"("logit_bias":{"5":)") + good + "}");
  }
  for (const char* bad : {"-100.001", "100.001", "1e39", "-1e300", "null", "\"1\"", "true", "[1]", "false"}) {
    refused(std::string(R"("logit_bias":{"5":)") + bad + "}", "logit_bias.5");
  }
}

TEST_F(ListFieldsTest, BiasesHaveALimit) {
  const auto biases = [](std::size_t n) {
    std::string object = "\"logit_bias\":{";
    for (std::size_t i = 0; i < n; ++i) object += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
    return object + "}";
  };
  EXPECT_EQ(accepted(biases(1023)).rules.bias.size(), 1023u);
  EXPECT_EQ(accepted(biases(1024)).rules.bias.size(), 1024u);
  refused(biases(1025), "logit_bias");
}

TEST_F(ListFieldsTest, StopTokensAreIdsAndNotTheModelsOwnEnds) {
  EXPECT_EQ(accepted(R"("stop_token_ids":[5,4095,0])").stop_token_ids, (Ids{5, 4095}));
  EXPECT_EQ(accepted(R"("stop_token_ids":[5,0],"ignore_eos":true)").stop_token_ids, (Ids{5, 0}));
  for (const char* bad : {"[4096]", "[-1]", "[1.0]", "[true]", "[\"5\"]", "[null]", "5", "\"5\"", "{}", "[[5]]"}) {
    refused(std::string(R"("stop_token_ids":)") + bad, "stop_token_ids");
  }
  EXPECT_EQ(accepted("\"stop_token_ids\":" + repeated(127, "5")).stop_token_ids.size(), 127u);
  EXPECT_EQ(accepted("\"stop_token_ids\":" + repeated(128, "5")).stop_token_ids.size(), 128u);
  refused("\"stop_token_ids\":" + repeated(129, "5"), "stop_token_ids");
}

TEST_F(ListFieldsTest, AllowedTokensAreASetThatIsNotEmpty) {
  EXPECT_EQ(accepted(R"("allowed_token_ids":[9,5,9,4095])").rules.allowed, (Ids{5, 9, 4095}));
  refused(R"("allowed_token_ids":[])", "allowed_token_ids");
  for (const char* bad : {"[4096]", "[-1]", "[1.5]", "5", "{}"}) {
    refused(std::string(R"("allowed_token_ids":)") + bad, "allowed_token_ids");
  }
  accepted("\"allowed_token_ids\":" + repeated(4095, "5"));
  accepted("\"allowed_token_ids\":" + repeated(4096, "5"));
  refused("\"allowed_token_ids\":" + repeated(4097, "5"), "allowed_token_ids");
}

TEST_F(ListFieldsTest, BadWordsAreTextsWithALimit) {
  EXPECT_EQ(accepted(R"("bad_words":["king"," queen"])").bad_words, (std::vector<std::string>{"king", " queen"}));
  EXPECT_FALSE(accepted(R"("bad_words":[])").has_rules());
  for (const char* bad : {"\"king\"", "[\"\"]", "[1]", "[null]", "{}", "1"}) {
    refused(std::string(R"("bad_words":)") + bad, "bad_words");
  }
  accepted("\"bad_words\":" + repeated(127, "\"x\""));
  accepted("\"bad_words\":" + repeated(128, "\"x\""));
  refused("\"bad_words\":" + repeated(129, "\"x\""), "bad_words");
  accepted("\"bad_words\":" + repeated(1, '"' + std::string(4096, 'x') + '"'));
  refused("\"bad_words\":" + repeated(1, '"' + std::string(4097, 'x') + '"'), "bad_words");
  accepted("\"bad_words\":" + repeated(2, '"' + std::string(2048, 'x') + '"'));
  refused("\"bad_words\":" + repeated(2, '"' + std::string(2049, 'x') + '"'), "bad_words");
}

}  // namespace
}  // namespace quire::api::list_fields_test
