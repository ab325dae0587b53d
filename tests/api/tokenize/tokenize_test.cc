#include "api/tokenize/tokenize.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/api/generation/fake_engine.h"
#include "tests/api/wire/patient_calls.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;

class TokenizeTest : public ::testing::Test {
 protected:
  json::value good(const http::Response& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  json::value error(const http::Response& response, int status = 400) {
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body).at("error");
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(TokenizeTest, ReportsTheIdsThatAPromptBecomes) {
  const json::value reported = good(tokenize(services_, R"({"prompt":"Once upon a time"})"));
  const auto ids = services_.tokenizer->encode("Once upon a time", true);
  EXPECT_EQ(reported.at("count"), static_cast<std::int64_t>(ids.size()));
  EXPECT_EQ(reported.at("max_model_len"), 512);
  EXPECT_EQ(json::value_to<std::vector<TokenId>>(reported.at("tokens")), ids);
  EXPECT_TRUE(reported.at("token_strs").is_null());
}

TEST_F(TokenizeTest, SpellsEachTokenWhereAsked) {
  const json::value reported = good(tokenize(
      services_, R"({"prompt":"Once é","return_token_strs":true,"add_special_tokens":false,"model":"stories"})"));
  const auto ids = services_.tokenizer->encode("Once é", false);
  ASSERT_EQ(reported.at("token_strs").as_array().size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(std::string(reported.at("token_strs").at(i).as_string()), services_.tokenizer->piece(ids[i]));
  }
}

TEST_F(TokenizeTest, AnEmptyTextHasItsSpecialTokensAlone) {
  const json::value reported = good(tokenize(services_, R"({"prompt":""})"));
  EXPECT_EQ(reported.at("count"), static_cast<std::int64_t>(services_.tokenizer->encode("", true).size()));
}

TEST_F(TokenizeTest, ReportsTheTextThatIdsSpell) {
  EXPECT_EQ(good(detokenize(services_, R"({"tokens":[]})")).at("prompt"), "");
  const auto ids = services_.tokenizer->encode("Once upon a time", false);
  const std::string body = json::serialize(json::object{{"tokens", json::value_from(ids)}});
  EXPECT_EQ(good(detokenize(services_, body)).at("prompt"), "Once upon a time");
  EXPECT_NE(good(detokenize(services_, R"({"tokens":[0]})")).at("prompt"), "") << "special tokens are told, too";
}

TEST_F(TokenizeTest, RefusalsNameTheirField) {
  EXPECT_EQ(error(tokenize(services_, "{}")).at("param"), "prompt");
  EXPECT_EQ(error(tokenize(services_, R"({"prompt":null})")).at("param"), "prompt");
  EXPECT_EQ(error(tokenize(services_, R"({"prompt":["a"]})")).at("param"), "prompt");
  EXPECT_EQ(error(tokenize(services_, R"({"prompt":"a","add_special_tokens":1})")).at("param"), "add_special_tokens");
  EXPECT_EQ(error(tokenize(services_, R"({"prompt":"a","return_token_strs":"x"})")).at("param"), "return_token_strs");
  EXPECT_EQ(error(tokenize(services_, R"({"prompt":"a","model":"none"})"), 404).at("param"), "model");
  EXPECT_TRUE(error(tokenize(services_, "[1]")).at("param").is_null());
  EXPECT_EQ(error(detokenize(services_, "{}")).at("param"), "tokens");
  for (const char* tokens : {"1", "\"a\"", "[\"a\"]", "[-1]", "[4096]", "[1.5]", "[null]", "[[1]]", "[1e30]"}) {
    EXPECT_EQ(error(detokenize(services_, std::string(R"({"tokens":)") + tokens + "}")).at("param"), "tokens")
        << tokens;
  }
  EXPECT_EQ(good(detokenize(services_, R"({"tokens":[4095]})")).as_object().size(), 1u);
}

TEST_F(TokenizeTest, IsLimited) {
  services_.limits.max_tokenized_bytes = 8;
  services_.limits.max_detokenized_tokens = 3;
  for (const std::size_t n : {7u, 8u, 9u}) {
    const auto reported = tokenize(services_, R"({"prompt":")" + std::string(n, 'a') + "\"}");
    EXPECT_EQ(reported.status == 200, n <= 8) << n;
  }
  EXPECT_EQ(detokenize(services_, R"({"tokens":[1,2]})").status, 200);
  EXPECT_EQ(detokenize(services_, R"({"tokens":[1,2,3]})").status, 200);
  EXPECT_EQ(error(detokenize(services_, R"({"tokens":[1,2,3,4]})")).at("param"), "tokens");
}

TEST_F(TokenizeTest, AnUnknownFieldIsIgnoredAndNamedInAHeader) {
  const http::Response response = tokenize(services_, R"({"prompt":"a","colour":1})");
  EXPECT_EQ(response.status, 200);
  ASSERT_EQ(response.fields.size(), 1u);
  EXPECT_EQ(response.fields[0].name, "X-Quire-Warnings");
  EXPECT_NE(response.fields[0].value.find("colour"), std::string::npos);
}

}  // namespace
}  // namespace quire::api::test
