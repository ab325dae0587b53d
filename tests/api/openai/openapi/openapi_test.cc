#include "api/openai/openapi/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "api/http/router.h"
#include "api/openai/fields/field.h"
#include "tests/api/fake_engine.h"

namespace quire::api::openai {
namespace {

namespace json = boost::json;

class OpenApiTest : public testing::Test {
 protected:
  const json::value& schema(const std::string& path) const {
    return document_.at("paths")
        .at(path)
        .at("post")
        .at("requestBody")
        .at("content")
        .at("application/json")
        .at("schema");
  }

  test::World world_;
  Services services_ = world_.services();
  json::value document_ = json::parse(openapi(services_).body);
};

TEST_F(OpenApiTest, EveryPathOfItIsARouteWithThatMethod) {
  for (const auto& path : document_.at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      http::Request request;
      request.path = std::string(path.key());
      request.method = std::string(operation.key());
      std::transform(request.method.begin(), request.method.end(), request.method.begin(), ::toupper);
      const std::string what = request.method + " " + request.path;
      const auto reply = http::route(std::move(request), services_, {.ready = true, .draining = false});
      if (const auto* response = std::get_if<http::Response>(&reply)) {
        EXPECT_NE(response->status, 405) << what;
        EXPECT_EQ(response->body.find("no such path"), std::string::npos) << what;
      }
    }
  }
}

TEST_F(OpenApiTest, EveryPathThatA404NamesIsInIt) {
  http::Request request;
  request.path = "/nowhere";
  request.method = "GET";
  const auto reply = http::route(std::move(request), services_, {.ready = true, .draining = false});
  const auto* response = std::get_if<http::Response>(&reply);
  ASSERT_NE(response, nullptr);
  const std::string told(json::parse(response->body).at("error").at("message").as_string());
  std::size_t num_paths = 0;
  for (std::size_t begin = told.find(" /"); begin != told.npos; begin = told.find(" /", begin + 1)) {
    const std::string path = told.substr(begin + 1, told.find_first_of(", ", begin + 1) - begin - 1);
    EXPECT_TRUE(document_.at("paths").as_object().contains(path)) << path;
    ++num_paths;
  }
  EXPECT_GT(num_paths, 10u);
}

TEST_F(OpenApiTest, ABodyHasEveryFieldOfItsTablesAndNoOther) {
  std::set<std::string> described;
  for (const auto& field : schema("/v1/completions").at("properties").as_object()) {
    EXPECT_TRUE(described.emplace(field.key()).second) << field.key() << " twice";
  }
  for (const Field& field : shared_fields()) {
    EXPECT_EQ(described.count(field.name), (field.endpoints & kCompletions) != 0 ? 1u : 0u) << field.name;
  }
  EXPECT_TRUE(described.contains("prompt"));
  EXPECT_EQ(schema("/v1/completions").at("required"), json::parse(R"(["prompt"])"));
  EXPECT_EQ(schema("/v1/messages").at("required"), json::parse(R"(["messages","max_tokens"])"));
  EXPECT_TRUE(schema("/v1/messages").at("properties").as_object().contains("stop_sequences"));
  EXPECT_FALSE(schema("/v1/messages/count_tokens").at("properties").as_object().contains("max_tokens"));
  EXPECT_TRUE(schema("/v1/responses").at("properties").as_object().contains("max_output_tokens"));
  EXPECT_TRUE(schema("/v1/chat/completions").at("properties").as_object().contains("max_completion_tokens"));
  EXPECT_EQ(schema("/detokenize").at("properties").as_object().size(), 2u);
}

TEST_F(OpenApiTest, RangesAreThoseOfTheParser) {
  services_.limits.max_choices = 7;
  document_ = json::parse(openapi(services_).body);
  const json::value fields = schema("/v1/completions").at("properties");
  EXPECT_EQ(fields.at("n").at("minimum"), 1);
  EXPECT_EQ(fields.at("n").at("maximum"), 7);
  EXPECT_EQ(fields.at("n").at("type"), json::parse(R"(["integer","null"])"));
  EXPECT_EQ(fields.at("top_p").at("exclusiveMinimum"), 0);
  EXPECT_EQ(fields.at("temperature").at("minimum"), 0);
  EXPECT_EQ(fields.at("temperature").at("maximum"), 2);
  EXPECT_EQ(fields.at("stream").at("type"), json::parse(R"(["boolean","null"])"));
  EXPECT_EQ(fields.at("prompt").at("type"), json::parse(R"(["string","array"])")) << "it has to be there";
}

}  // namespace
}  // namespace quire::api::openai
