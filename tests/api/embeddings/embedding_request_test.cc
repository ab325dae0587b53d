#include "api/embeddings/embedding_request.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/api/generation/fake_engine.h"

namespace quire::api::test {
namespace {

class EmbeddingRequestTest : public ::testing::Test {
 protected:
  Result<EmbeddingRequest> parse(const std::string& body) const { return parse_embedding_request(body, services_); }
  EmbeddingRequest accepted(const std::string& field) const {
    Result<EmbeddingRequest> parsed = parse(R"({"input":"p",)" + field + "}");
    EXPECT_TRUE(parsed.ok()) << field << ": " << parsed.error().message;
    return parsed.ok() ? std::move(*parsed) : EmbeddingRequest{};
  }
  void refused(const std::string& body, const std::string& param) const {
    const Result<EmbeddingRequest> parsed = parse(body);
    ASSERT_FALSE(parsed.ok()) << body;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << body;
    EXPECT_EQ(parsed.error().param, param) << body;
    EXPECT_LT(parsed.error().message.size(), 400u);
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
  }
  void refused_field(const std::string& field, const std::string& param) const {
    refused(R"({"input":"p",)" + field + "}", param);
  }
  static std::string list(std::size_t n, const std::string& of) {
    std::string all = "[";
    for (std::size_t i = 0; i < n; ++i) all.append(i == 0 ? "" : ",").append(of);
    return all + "]";
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(EmbeddingRequestTest, ByDefaultTheLastRowIsReturnedInFullNormalisedAndAsNumbers) {
  const EmbeddingRequest request = *parse(R"({"input":"hello"})");
  EXPECT_EQ(request.model, "stories");
  ASSERT_EQ(request.inputs.size(), 1u);
  EXPECT_EQ(std::get<std::string>(request.inputs[0]), "hello");
  EXPECT_EQ(request.pooling, flow::Pooling::kLast);
  EXPECT_FALSE(request.dimensions || request.base64);
  EXPECT_TRUE(request.normalize && request.add_special_tokens);
  EXPECT_EQ(request.max_tokens, 0u);
  EXPECT_FALSE(request.stream || request.scores_prompt() || request.has_rules());
  EXPECT_EQ(request.best_of, 1u);
}

TEST_F(EmbeddingRequestTest, ReadsEveryField) {
  const EmbeddingRequest request = accepted(
      R"("model":"org/stories","encoding_format":"base64","dimensions":3,"pooling":"mean","normalize":false,"user":"u",)"
      R"("truncate_prompt_tokens":5,"add_special_tokens":false,"cache_salt":"s","priority":-2,"deadline_ms":7,)"
      R"("request_id":"mine","truncation_side":"left","embed_dtype":"float32","endianness":"little","messages":null)");
  EXPECT_EQ(request.model, "org/stories");
  EXPECT_TRUE(request.base64);
  EXPECT_EQ(request.dimensions, 3u);
  EXPECT_EQ(request.pooling, flow::Pooling::kMean);
  EXPECT_FALSE(request.normalize || request.add_special_tokens);
  EXPECT_EQ(request.truncate_prompt_tokens, 5);
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_EQ(request.priority, -2);
  EXPECT_EQ(request.deadline_ms, 7u);
  EXPECT_EQ(request.request_id, "mine");
  EXPECT_EQ(request.num_unknown_fields, 0u);
}

TEST_F(EmbeddingRequestTest, TreatsNullAsNotGiven) {
  std::string fields = R"("input":"p")";
  for (const std::span<const Field> table : {shared_fields(), embedding_fields()}) {
    for (const Field& field : table) {
      if ((field.endpoints & kEmbeddings) == 0 || std::string_view(field.name) == "input") continue;
      fields += std::string(",\"") + field.name + "\":null";
    }
  }
  const Result<EmbeddingRequest> parsed = parse("{" + fields + "}");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->num_unknown_fields, 0u);
  EXPECT_TRUE(parsed->normalize);
}

TEST_F(EmbeddingRequestTest, WhatBelongsToAnAnswerIsPassedOverAndNeverRead) {
  for (const char* name : {"max_tokens", "temperature", "stream", "n", "stop", "logprobs", "prompt_logprobs",
                           "kv_policy", "response_format", "use_beam_search", "echo"}) {
    const EmbeddingRequest request = accepted("\"" + std::string(name) + "\":[\"nonsense\"]");
    EXPECT_EQ(request.unknown_fields, std::vector<std::string>{name});
  }
}

TEST_F(EmbeddingRequestTest, AnInputIsATextOrTokensOrAListOfEither) {
  EXPECT_EQ(parse(R"({"input":["a","b"]})")->inputs.size(), 2u);
  EXPECT_EQ(parse(R"({"input":[[1],[2,3]]})")->inputs.size(), 2u);
  EXPECT_EQ(std::get<std::vector<TokenId>>(parse(R"({"input":[1,0,4095]})")->inputs.at(0)),
            (std::vector<TokenId>{1, 0, 4095}));
  for (const char* input :
       {"",      "null",     "1",           "true",       "{}",         "[]",           "[[]]",   "[[1],[]]",
        R"("")", R"([""])",  R"(["a",""])", R"(["a",1])", R"([1,"a"])", R"([[1],"a"])", "[4096]", "[-1]",
        "[1.5]", "[[4096]]", "[true]",      "[null]",     "[[[1]]]",    R"([["a"]])"}) {
    if (*input == '\0') {
      refused("{}", "input");
    } else {
      refused(R"({"input":)" + std::string(input) + "}", "input");
    }
  }
}

TEST_F(EmbeddingRequestTest, TakesAsManyInputsAsOpenAiDoes) {
  for (const std::size_t n : {2047u, 2048u}) EXPECT_EQ(parse(R"({"input":)" + list(n, "[7]") + "}")->inputs.size(), n);
  refused(R"({"input":)" + list(2049, "[7]") + "}", "input");
}

TEST_F(EmbeddingRequestTest, IsLimited) {
  services_.limits.max_inputs = 3;
  for (const char* one : {R"("a")", "[7]"}) {
    for (const std::size_t n : {2u, 3u}) EXPECT_EQ(parse(R"({"input":)" + list(n, one) + "}")->inputs.size(), n);
    refused(R"({"input":)" + list(4, one) + "}", "input");
  }
  for (const std::uint32_t n : {1u, 2u, 5u, 6u}) {  // World's model has 6
    EXPECT_EQ(accepted("\"dimensions\":" + std::to_string(n)).dimensions, n);
  }
  for (const char* n : {"0", "7", "-1", "1.5", "\"3\"", "1e3"})
    refused_field("\"dimensions\":" + std::string(n), "dimensions");
  refused_field(R"("user":")" + std::string(257, 'a') + "\"", "user");
  refused_field(R"("cache_salt":")" + std::string(129, 'a') + "\"", "cache_salt");
  refused_field(R"("request_id":")" + std::string(129, 'a') + "\"", "request_id");
}

TEST_F(EmbeddingRequestTest, RefusalsNameTheirField) {
  for (const char* value : {"\"hex\"", "1", "[]", "\"Float\""}) {
    refused_field("\"encoding_format\":" + std::string(value), "encoding_format");
    refused_field("\"pooling\":" + std::string(value), "pooling");
  }
  refused_field(R"("normalize":"yes")", "normalize");
  refused_field(R"("messages":[])", "messages");
  refused_field(R"("embed_dtype":"float16")", "embed_dtype");
  refused_field(R"("endianness":"big")", "endianness");
  refused_field(R"("truncate_prompt_tokens":0)", "truncate_prompt_tokens");
  refused_field(R"("truncate_prompt_tokens":-2)", "truncate_prompt_tokens");
  refused_field(R"("truncation_side":"right")", "truncation_side");
  refused_field(R"("dimensions":3,"dimensions":3)", "dimensions");
  EXPECT_EQ(parse(R"({"input":"a","model":"none"})").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace quire::api::test
