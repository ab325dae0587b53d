#include "api/fields/grammar_fields.h"

#include <gtest/gtest.h>

#include <string>

#include "api/completions/completion_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::grammar_fields_test {
namespace {

using Kind = GrammarText::Kind;

class GrammarFieldsTest : public ::testing::Test {
 protected:
  Result<CompletionRequest> with(const std::string& field) const {
    return parse_completion_request(R"({"prompt":"p",)" + field + "}", services_);
  }
  void reads(const std::string& field, Kind kind, const std::string& text, const std::string& name) const {
    const Result<CompletionRequest> parsed = with(field);
    ASSERT_TRUE(parsed.ok()) << field << ": " << parsed.error().message;
    ASSERT_TRUE(parsed->grammar_text) << field;
    EXPECT_EQ(parsed->grammar_text->kind, kind) << field;
    EXPECT_EQ(parsed->grammar_text->text, text) << field;
    EXPECT_EQ(parsed->grammar_text->field, name) << field;
  }
  void refused(const std::string& field, const std::string& param) const {
    const Result<CompletionRequest> parsed = with(field);
    ASSERT_FALSE(parsed.ok()) << field;
    EXPECT_EQ(parsed.error().param, param) << field;
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
  }
  void asks_nothing(const std::string& field) const {
    const Result<CompletionRequest> parsed = with(field);
    ASSERT_TRUE(parsed.ok()) << field << ": " << parsed.error().message;
    EXPECT_FALSE(parsed->grammar_text) << field;
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(GrammarFieldsTest, ReadsOpenAIsForms) {
  asks_nothing(R"("response_format":{"type":"text"})");
  reads(R"("response_format":{"type":"json_object"})", Kind::kJsonObject, "", "response_format");
  reads(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type" : "object"}}})",
      Kind::kJsonSchema, R"({"type":"object"})", "response_format.json_schema.schema");
}

TEST_F(GrammarFieldsTest, ReadsVllmsForms) {
  reads(R"("structured_outputs":{"regex":"a+"})", Kind::kRegex, "a+", "structured_outputs.regex");
  reads(R"("structured_outputs":{"choice":["a","b"]})", Kind::kChoice, R"(["a","b"])", "structured_outputs.choice");
  reads(R"("structured_outputs":{"grammar":"root ::= \"a\""})", Kind::kEbnf, R"(root ::= "a")",
        "structured_outputs.grammar");
  reads(R"("structured_outputs":{"json":{"type":"integer"}})", Kind::kJsonSchema, R"({"type":"integer"})",
        "structured_outputs.json");
  reads(R"("structured_outputs":{"json":"{}","regex":null})", Kind::kJsonSchema, "{}", "structured_outputs.json");
  reads(R"("structured_outputs":{"json_object":true})", Kind::kJsonObject, "", "structured_outputs.json_object");
  asks_nothing(R"("structured_outputs":{"json_object":false})");
  asks_nothing(R"("structured_outputs":{"disable_fallback":true})");
  reads(R"("guided_json":{"type":"null"})", Kind::kJsonSchema, R"({"type":"null"})", "guided_json");
  reads(R"("guided_regex":"x")", Kind::kRegex, "x", "guided_regex");
  reads(R"("guided_choice":["y"])", Kind::kChoice, R"(["y"])", "guided_choice");
  reads(R"("guided_grammar":"g")", Kind::kEbnf, "g", "guided_grammar");
}

TEST_F(GrammarFieldsTest, RefusesEveryOtherShape) {
  for (const char* value : {"1", "\"json_object\"", "[]"}) {
    refused(std::string(R"("response_format":)") + value, "response_format");
    refused(std::string(R"("structured_outputs":)") + value, "structured_outputs");
  }
  for (const char* value : {"{}", R"({"type":"xml"})", R"({"type":1})", R"({"type":"structural_tag"})"}) {
    refused(std::string(R"("response_format":)") + value, "response_format.type");
  }
  const std::string format = R"("response_format":{"type":"json_schema","json_schema":)";
  refused(R"("response_format":{"type":"json_schema"})", "response_format.json_schema");
  refused(format + "1}", "response_format.json_schema");
  refused(format + "{}}", "response_format.json_schema.schema");
  refused(format + R"({"schema":[]}})", "response_format.json_schema.schema");
  refused(format + R"({"schema":{},"strict":"yes"}})", "response_format.json_schema.strict");
  refused(format + R"({"schema":{},"name":5}})", "response_format.json_schema.name");
  refused(R"("structured_outputs":{"regex":1})", "structured_outputs.regex");
  refused(R"("structured_outputs":{"structural_tag":"{}"})", "structured_outputs.structural_tag");
  refused(R"("structured_outputs":{"disable_any_whitespace":true})", "structured_outputs.disable_any_whitespace");
  for (const char* value : {"[]", "[1]", "\"a\"", "{}"})
    refused(std::string(R"("guided_choice":)") + value, "guided_choice");
  refused(R"("guided_json":1)", "guided_json");
  refused(R"("guided_regex":["a"])", "guided_regex");
}

TEST_F(GrammarFieldsTest, ASchemaThatIsAskedForIsNeverPassedOver) {
  const auto format = [](const char* members) { return R"("response_format":{)" + std::string(members) + "}"; };
  constexpr const char* kArray = R"({"type":"array"})";
  reads(format(R"("type":"json_object","schema":{"type":"array"})"), Kind::kJsonSchema, kArray,
        "response_format.schema");
  reads(format(R"("type":"json_object","value":{"type":"array"})"), Kind::kJsonSchema, kArray, "response_format.value");
  reads(format(R"("type":"json","value":{"type":"array"})"), Kind::kJsonSchema, kArray, "response_format.value");
  reads(format(R"("type":"json_schema","schema":{"type":"array"},"name":"n")"), Kind::kJsonSchema, kArray,
        "response_format.schema");
  reads(format(R"("type":"json_object","json_schema":{"schema":{"type":"array"}})"), Kind::kJsonSchema, kArray,
        "response_format.json_schema.schema");
  reads(format(R"("type":"regex","value":"a+")"), Kind::kRegex, "a+", "response_format.value");
  reads(format(R"("type":"grammar","grammar":"g")"), Kind::kEbnf, "g", "response_format.grammar");
  reads(format(R"("type":"json")"), Kind::kJsonObject, "", "response_format");
  reads(R"("json_schema":"{\"type\": \"array\"}")", Kind::kJsonSchema, kArray, "json_schema");
  reads(R"("regex":"a+")", Kind::kRegex, "a+", "regex");
  reads(R"("ebnf":"g")", Kind::kEbnf, "g", "ebnf");
  reads(R"("grammar":"g")", Kind::kEbnf, "g", "grammar");
  refused(format(R"("type":"text","schema":{})"), "response_format.schema");
  refused(format(R"("type":"text","json_schema":{"schema":{}})"), "response_format.json_schema");
  refused(format(R"("type":"regex","schema":{})"), "response_format.schema");
  refused(format(R"("type":"regex")"), "response_format.value");
  refused(format(R"("type":"grammar")"), "response_format.grammar");
  refused(format(R"("type":"json_object","schema":7)"), "response_format.schema");
  refused(R"("grammar":{"type":"json"})", "grammar");
}

TEST_F(GrammarFieldsTest, TwoEqualFormsAreOne) {
  reads(R"("regex":"a","guided_regex":"a")", Kind::kRegex, "a", "regex");
  reads(R"("guided_json":{"type":"null"},"json_schema":"{ \"type\" : \"null\" }")", Kind::kJsonSchema,
        R"({"type":"null"})", "guided_json");
  reads(R"("response_format":{"type":"json_object"},"structured_outputs":{"json_object":true})", Kind::kJsonObject, "",
        "response_format");
  refused(R"("regex":"a","guided_regex":"b")", "guided_regex");
  refused(R"("regex":"a","ebnf":"a")", "ebnf");
}

TEST_F(GrammarFieldsTest, AnAnswerHasOneForm) {
  refused(R"("guided_regex":"a","guided_choice":["a"])", "guided_choice");
  refused(R"("structured_outputs":{"regex":"a","json":{}})", "structured_outputs.json");
  refused(R"("response_format":{"type":"json_object"},"guided_json":{})", "guided_json");
}

TEST_F(GrammarFieldsTest, WhatIsUnknownInsideIsListed) {
  const Result<CompletionRequest> parsed = with(R"("structured_outputs":{"regex":"a","colour":1})");
  EXPECT_EQ(parsed->unknown_fields, std::vector<std::string>{"structured_outputs.colour"});
}

TEST_F(GrammarFieldsTest, AGrammarHasALimit) {
  services_.limits.max_grammar_bytes = 100;
  for (const std::size_t bytes : {99, 100})
    EXPECT_TRUE(with(R"("guided_regex":")" + std::string(bytes, 'a') + '"').ok());
  refused(R"("guided_regex":")" + std::string(101, 'a') + '"', "guided_regex");
  refused(R"("guided_json":{"title":")" + std::string(101, 'a') + R"("})", "guided_json");
}

}  // namespace
}  // namespace quire::api::grammar_fields_test
