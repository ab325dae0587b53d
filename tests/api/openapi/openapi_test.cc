#include "api/openapi/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "api/fields/field.h"
#include "api/limits/key_table.h"
#include "api/routes/router.h"
#include "api/services/slo_hints.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;

class OpenApiTest : public ::testing::Test {
 protected:
  // The schema of the body of a POST.
  const json::value& schema(const std::string& path) const {
    const json::value& body = document_.at("paths").at(path).at("post").at("requestBody");
    const std::string name(body.at("content").at("application/json").at("schema").at("$ref").as_string());
    return document_.at("components").at("schemas").at(name.substr(std::string("#/components/schemas/").size()));
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
  const std::string reported(json::parse(response->body).at("error").at("message").as_string());
  std::size_t num_paths = 0;
  for (std::size_t begin = reported.find(" /"); begin != reported.npos; begin = reported.find(" /", begin + 1)) {
    const std::string path = reported.substr(begin + 1, reported.find_first_of(", ", begin + 1) - begin - 1);
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
  EXPECT_EQ(fields.at("stop").at("type"), json::parse(R"(["string","array","null"])"));
  EXPECT_EQ(fields.at("stop").at("items"), json::parse(R"({"type":"string"})"));
  EXPECT_EQ(fields.at("prompt").at("anyOf").as_array().size(), 4u) << "it has to be there, so null is not one";
}

TEST_F(OpenApiTest, AServerWithKeysNamesTheirSchemesAndThePathsThatNeedNone) {
  EXPECT_EQ(document_.at("security"), json::parse("[{}]"));
  EXPECT_FALSE(document_.at("components").as_object().contains("securitySchemes"));
  const auto operation = [&](const char* path, const char* method) -> const json::object& {
    return document_.at("paths").at(path).at(method).as_object();
  };
  EXPECT_FALSE(operation("/v1/models", "get").at("responses").as_object().contains("401"));

  const concurrent::Latest<keys::KeyTable> keys{
      std::make_shared<const keys::KeyTable>(std::vector<keys::KeyEntry>{}, nullptr)};
  services_.keys = &keys;
  document_ = json::parse(openapi(services_).body);
  EXPECT_EQ(document_.at("security"), json::parse(R"([{"bearer":[]},{"key":[]}])"));
  EXPECT_TRUE(document_.at("components").at("securitySchemes").as_object().contains("bearer"));
  EXPECT_EQ(operation("/live", "get").at("security"), json::parse("[]"));
  EXPECT_FALSE(operation("/live", "get").at("responses").as_object().contains("401"));
  for (const char* path : {"/v1/models", "/metrics", "/version"}) {
    EXPECT_FALSE(operation(path, "get").contains("security")) << path;
    EXPECT_TRUE(operation(path, "get").at("responses").as_object().contains("401")) << path;
  }
}

TEST_F(OpenApiTest, AnErrorHasTheStatusOfItsCodeAndTheShapeOfItsPath) {
  const json::object& responses = document_.at("paths").at("/v1/messages").at("post").at("responses").as_object();
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kTooLarge, Code::kUnsupportedMedia,
                          Code::kQueueFull, Code::kCancelled, Code::kUnavailable, Code::kDeadline}) {
    const json::value& refusal = responses.at(std::to_string(status_of(code)));
    EXPECT_EQ(refusal.at("content").at("application/json").at("schema").at("$ref"),
              "#/components/schemas/AnthropicError");
  }
  const json::value& models = document_.at("paths").at("/v1/models").at("get").at("responses");
  EXPECT_EQ(models.at("default").at("content").at("application/json").at("schema").at("anyOf").as_array().size(), 2u);
}

std::set<std::string> headers_of(const json::value& operation) {
  std::set<std::string> names;
  for (const json::value& parameter : operation.at("parameters").as_array()) {
    if (parameter.at("in") == "header") names.emplace(parameter.at("name").as_string());
  }
  return names;
}

TEST_F(OpenApiTest, EveryHeaderThatIsReadIsAParameterWhereItIsReadAndNowhereElse) {
  std::set<std::string> everywhere;
  std::set<std::string> generating;
  for (const std::span<const http::Header> headers : {http::request_headers(), requests::slo_hint_headers()}) {
    for (const http::Header& one : headers) {
      if ((one.paths & http::kEveryPath) != 0) everywhere.emplace(one.name);
      if ((one.paths & (http::kEveryPath | http::kGenerating)) != 0) generating.emplace(one.name);
    }
  }
  for (const char* name :
       {"X-Request-Id", "X-Request-Key", "traceparent", "tracestate", "X-Request-Timeout", "x-slo-ttft-ms",
        "x-slo-tpot-ms", "x-session-id", "x-gateway-inference-objective", "x-gateway-inference-fairness-id"}) {
    EXPECT_TRUE(generating.contains(name)) << name;
  }
  const json::object& paths = document_.at("paths").as_object();
  for (const char* path :
       {"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"}) {
    EXPECT_EQ(headers_of(paths.at(path).at("post")), generating) << path;
  }
  const json::value& models = paths.at("/v1/models").at("get");
  EXPECT_TRUE(headers_of(models).contains("anthropic-version"));
  EXPECT_FALSE(headers_of(paths.at("/version").at("get")).contains("anthropic-version"));
  for (const char* path : {"/tokenize", "/admin/cache/save", "/admin/cache/clear"}) {
    EXPECT_EQ(headers_of(paths.at(path).at("post")), everywhere) << path;
  }
  EXPECT_EQ(headers_of(paths.at("/live").at("get")), everywhere);
  everywhere.emplace("X-Request-Key");
  EXPECT_EQ(headers_of(paths.at("/v1/requests/{id}").at("delete")), everywhere);
}

TEST_F(OpenApiTest, ATimesRangeIsThatOfItsHeaderAndALabelsLengthToo) {
  for (const json::value& parameter :
       document_.at("paths").at("/v1/completions").at("post").at("parameters").as_array()) {
    const std::string name(parameter.at("name").as_string());
    const json::value& schema = parameter.at("schema");
    const auto taken = [&](const std::string& value) {
      return requests::slo_hints_of(std::vector<http::Field>{{name, value}}, services_.limits).ok();
    };
    if (schema.at("type") == "number") {
      std::ostringstream lowest;
      lowest << json::value_to<double>(schema.at("minimum"));
      const auto highest = std::to_string(json::value_to<std::int64_t>(schema.at("maximum")));
      EXPECT_TRUE(taken(lowest.str())) << name;
      EXPECT_FALSE(taken("0.0009")) << name;
      EXPECT_TRUE(taken(highest)) << name;
      EXPECT_FALSE(taken(highest + ".001")) << name;
    } else if (name.find("inference") != name.npos || name.find("session") != name.npos) {
      const auto most = json::value_to<std::size_t>(schema.at("maxLength"));
      EXPECT_TRUE(taken(std::string(most, 'x'))) << name;
      EXPECT_FALSE(taken(std::string(most + 1, 'x'))) << name;
    }
  }
}

TEST_F(OpenApiTest, AnAnswersHeadersAreDocumentedWhereTheyOccur) {
  const json::value& responses = document_.at("paths").at("/v1/completions").at("post").at("responses");
  const auto names = [](const json::value& response) {
    std::set<std::string> all;
    for (const auto& header : response.at("headers").as_object()) all.emplace(header.key());
    return all;
  };
  EXPECT_EQ(names(responses.at("200")), (std::set<std::string>{"X-Request-Id", "X-Request-Key", "X-Quire-Warnings"}));
  EXPECT_EQ(names(responses.at("default")), (std::set<std::string>{"X-Request-Id", "X-Request-Key", "X-Quire-Warnings",
                                                                   "Retry-After", "Allow", "WWW-Authenticate"}));
}

}  // namespace
}  // namespace quire::api::test
