#include "core/grammar/json_schema.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/rules_match.h"

namespace quire::grammar::json_schema_test {
namespace {

struct Case {
  std::string schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

std::string refusal(std::string_view text, const SchemaLimits& limits = {},
                    std::uint64_t max_steps = WriteBudget::kMaxSteps) {
  const auto schema = parse_schema(text, limits);
  if (!schema) return schema.error().message;
  Rules rules;
  WriteBudget budget(max_steps);
  const auto done = json_schema(rules, *schema, budget, limits);
  if (done.ok()) return "";
  EXPECT_EQ(done.error().code, Code::kInvalidArgument);
  EXPECT_EQ(done.error().param, "");
  return done.error().message;
}

void expect(const Case& test) {
  SCOPED_TRACE(test.schema);
  Rules rules;
  const auto schema = parse_schema(test.schema);
  ASSERT_TRUE(schema.ok());
  const auto done = json_schema(rules, *schema);
  ASSERT_TRUE(done.ok()) << done.error().message;
  for (const std::string& text : test.good) EXPECT_TRUE(RulesMatch(rules, text).whole()) << text;
  for (const std::string& text : test.bad) EXPECT_FALSE(RulesMatch(rules, text).whole()) << text;
}

void expect_refused(std::string_view schema, std::string_view pointer) {
  EXPECT_TRUE(refusal(schema).starts_with("schema: " + std::string(pointer) + " ")) << schema << "\n"
                                                                                    << refusal(schema);
}

TEST(JsonSchema, TypesAreTheirOwnTexts) {
  expect({R"({"type": "null"})", {"null"}, {"true", "0", "\"null\"", ""}});
  expect({R"({"type": "boolean"})", {"true", "false"}, {"null", "1"}});
  expect(
      {R"({"type": "integer"})", {"0", "-1", "123456789012345678"}, {"1.0", "01", "-0", "1e2", "1234567890123456789"}});
  expect({R"({"type": "number"})",
          {"0", "-0.5", "1e10", "1.5E-3", "1.123456789012345678"},
          {"1.", ".5", "+1", "1e100", "NaN", "--1"}});
  expect({R"({"type": "string"})",
          {R"("")", R"("a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")", "\"\xC3\xA9\""},
          {"\"", "\"\n\"", R"("\x")", R"("\ud83d")", R"("\ude00")", R"("\ud83dx")", "\"\xC3\"", "a"}});
  expect({R"({"type": "array"})", {"[]", "[1, \"a\", null]", "[[], {}]"}, {"[", "[1,]", "[,]", "{}"}});
  expect({R"({"type": "object"})", {"{}", R"({"a": {"b": [true]}})"}, {"{,}", R"({"a"})", "[]", R"({"a":1,})"}});
  expect({R"({"type": ["string", "null"]})", {"null", "\"a\""}, {"1", "true"}});
  expect({"true", {"1", "[]", "{\"a\":1}"}, {""}});
  expect({"{}", {"1", "[]", "{\"a\":1}"}, {""}});
}

TEST(JsonSchema, WhiteSpaceIsBoundedAndStandsBetweenTheParts) {
  const std::string indent(32, ' ');
  expect(
      {R"({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "required": ["a"]})",
       {R"({"a":[1,2]})", R"({ "a": [ 1, 2 ] })", "{\n  \"a\": [\n    1,\n    2\n  ]\n}",
        "{\n" + indent + "\"a\":[]\n}"},
       {R"({  "a":[]})", "{\n\n\"a\":[]}", "{\n" + indent + " \"a\":[]}", R"({"a" :[]})", R"({"a":  []})",
        " {\"a\":[]}", "{\"a\":[]} ", "{\"a\":[1 ,2]}", "{\t\"a\":[]}", "{\"a\":[ ]}"}});
}

TEST(JsonSchema, PropertiesStandInTheirOrderAndTheRequiredOnesAlways) {
  expect(
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}, "required": ["b"]})",
       {R"({"b":1})", R"({"a":1,"b":2})", R"({"b":1,"c":2})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"b":1,"a":2})", R"({"a":1,"a":1,"b":2})", R"({"b":1,"d":2})", R"({"b":1,"b":1})",
        R"({,"b":1})", R"({"b":"x"})"}});
  expect({R"({"type": "object", "required": ["x"]})", {R"({"x":[1]})"}, {"{}", R"({"y":1})"}});
  expect({R"({"type": "object", "properties": {"a b\"\n": true}})", {"{}", R"({"a b\"\n":1})"}, {R"({"a b":1})"}});
}

TEST(JsonSchema, OtherPropertiesComeLastAndNeverRepeatANamedOne) {
  expect(
      {R"({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}})",
       {"{}", R"({"a":1})", R"({"a":1,"b":true,"aa":false})", R"({"b":true})", R"({"":true})"},
       {R"({"b":1})", R"({"a":true})", R"({"a":1,"a":true})", R"({"b":true,"a":1})", R"({"\u0061":true})"}});
  expect({R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"}});
  expect({R"({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2})",
          {"{}", R"({"a":1,"b":2})"},
          {R"({"a":1,"b":2,"c":3})", R"({"a":true})"}});
  expect(
      {R"({"type": "object", "properties": {"a": true, "b": true, "c": true}, "minProperties": 2, "maxProperties": 2})",
       {R"({"a":1,"c":1})", R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
       {"{}", R"({"a":1})", R"({"a":1,"b":1,"c":1})"}});
  expect({R"({"type": "object", "minProperties": 1})", {R"({"a":1})", R"({"a":1,"b":1})"}, {"{}"}});
  expect_refused(R"({"type": "object", "minProperties": 2})", "#/minProperties");
}

TEST(JsonSchema, PropertyNamesAndPatternsDecideWhichKeysThereAre) {
  expect({R"({"type": "object", "propertyNames": {"maxLength": 2}, "additionalProperties": {"type": "integer"}})",
          {"{}", R"({"ab":1})", R"({"\n\n":1})"},
          {R"({"abc":1})", R"({"ab":true})"}});
  expect({R"({"type": "object", "propertyNames": {"enum": ["x", "y"]}})",
          {R"({"x":1})", R"({"y":1,"x":[]})"},
          {R"({"z":1})"}});
  expect(
      {R"({"type": "object", "properties": {"ab": {"minimum": 5}}, "patternProperties": {"^a": {"type": "integer"}, "b$": {"maximum": 9}}})",
       {R"({"ab":7})", R"({"ax":100})", R"({"xb":1.5})", R"({"aab":9})"},
       {R"({"ab":4})", R"({"ab":7.5})", R"({"aab":10})", R"({"ax":true})", R"({"x":1})"}});
}

TEST(JsonSchema, ItemsAreCounted) {
  expect({R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
          {"[1]", "[1,2,3]"},
          {"[]", "[1,2,3,4]", "[true]"}});
  expect({R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}})",
          {"[]", "[1]", R"([1,"a"])", R"([1,"a",null,null])"},
          {R"(["a"])", "[1,null]", R"([1,"a",1])"}});
  expect({R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2})",
          {R"([1,"a"])"},
          {"[]", "[1]", R"([1,"a",null])"}});
  expect(
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 2})", {"[1,2]", "[1,2,3,4,5]"}, {"[]", "[1]"}});
  expect({R"({"type": "array", "items": false})", {"[]"}, {"[1]"}});
  expect({R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}});
  expect(
      {R"({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}})",
       {"[]", "[1]", "[1,null]"},
       {"[null]", "[1,2]"}});
}

TEST(JsonSchema, UniqueItemsOfAnEnumKeepItsOrder) {
  expect({R"({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 1, "maxItems": 2})",
          {R"(["a"])", R"(["a","c"])", R"(["b","c"])"},
          {"[]", R"(["a","a"])", R"(["a","b","c"])", R"(["d"])", R"(["c","a"])"}});
  expect({R"({"type": "array", "uniqueItems": true, "maxItems": 1})", {"[]", "[1]"}, {"[1,1]"}});
  expect_refused(R"({"type": "array", "items": {"type": "string"}, "uniqueItems": true})", "#/uniqueItems");
}

TEST(JsonSchema, StringsAreCountedInCodePoints) {
  expect({R"({"type": "string", "minLength": 2, "maxLength": 3})",
          {R"("ab")", R"("\n\u00e9\ud83d\ude00")", "\"\xC3\xA9\xC3\xA9\""},
          {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}});
  expect({R"({"type": "string", "maxLength": 70000})", {"\"" + std::string(600, 'a') + "\""}, {"\"\n\""}});
  expect({R"({"type": "string", "minLength": 600, "maxLength": 1500})",
          {"\"" + std::string(600, 'a') + "\"", "\"" + std::string(1500, 'a') + "\""},
          {"\"" + std::string(599, 'a') + "\"", "\"" + std::string(1501, 'a') + "\""}});
  expect(
      {R"({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3})", {R"("abc")"}, {R"("abcd")", R"("")", R"("A")"}});
  expect({R"({"type": "string", "pattern": "b"})", {R"("b")", R"("abc")"}, {R"("")", R"("ac")"}});
}

TEST(JsonSchema, NumbersKeepTheirBoundsAndMultiples) {
  expect({R"({"type": "integer", "minimum": -3, "exclusiveMaximum": 12})", {"-3", "0", "11"}, {"-4", "12", "1.5"}});
  expect({R"({"type": "number", "minimum": 0, "maximum": 1})", {"0", "0.25", "1", "1.0"}, {"-0.1", "1.01", "1e0"}});
  expect({R"({"type": "integer", "multipleOf": 5, "minimum": 3, "maximum": 100})",
          {"5", "95", "100"},
          {"0", "3", "105", "7"}});
  expect({R"({"type": "integer", "format": "int32"})", {"2147483647", "-2147483648"}, {"2147483648", "-2147483649"}});
  expect_refused(R"({"type": "number", "multipleOf": 0.01})", "#/multipleOf");
}

TEST(JsonSchema, EnumsAndConstsAreWrittenOneWay) {
  expect({R"({"enum": ["a", 1, 1.5, null, true, [1, {"b": []}], "\u00e9\n"]})",
          {"\"a\"", "1", "1.5", "null", "true", "[1,{\"b\":[]}]", "[ 1, {\"b\": []} ]", "\"\xC3\xA9\\n\""},
          {"\"b\"", "2", "false", "[1]"}});
  expect({R"({"type": "string", "enum": ["a", 1, "bcd"], "maxLength": 2})", {"\"a\""}, {"1", "\"bcd\""}});
  expect({R"({"const": 3.0})", {"3.0"}, {"3.5"}});
  expect_refused(R"({"enum": [[1]], "items": {"type": "string"}})", "#");
}

TEST(JsonSchema, SchemasInOneAreMerged) {
  expect(
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}, "a": {"minimum": 5}}}], "type": "object"})",
       {R"({"a":5})", R"({"a":5,"b":1})"},
       {R"({"a":4})", R"({"b":1})", R"({"a":5,"b":1,"c":1})"}});
  expect(
      {R"({"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}]})",
       {"\"a\"", R"({"x":null})"},
       {"null", "{}"}});
  expect({R"({"type": "integer", "anyOf": [{"maximum": 3}, {"minimum": 9}]})", {"3", "9"}, {"4", "8", "3.0"}});
  expect({R"({"type": "object", "dependentRequired": {"a": ["b"]}, "properties": {"a": true, "b": true}})",
          {"{}", R"({"b":1})", R"({"a":1,"b":1})"},
          {R"({"a":1})"}});
  expect({R"({"not": {"type": ["object", "array", "string"]}})", {"1", "null"}, {"{}", "[]", "\"a\""}});
  expect({R"({"if": true, "then": {"type": "null"}, "else": false})", {"null"}, {"1"}});
}

TEST(JsonSchema, BranchesOfOneOfExcludeEachOther) {
  expect({R"({"oneOf": [{"type": "string"}, {"type": "integer"}]})", {"\"a\"", "1"}, {"null"}});
  expect(
      {R"({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
                        {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}]})",
       {R"({"kind":"a","x":1})", R"({"kind":"b"})"},
       {R"({"kind":"b","x":1})", R"({"kind":"c"})"}});
  expect({R"({"oneOf": [{"type": "object", "properties": {"a": true}, "required": ["a"], "additionalProperties": true},
                        {"type": "object", "properties": {"b": true}, "required": ["b"]}]})",
          {R"({"a":1})", R"({"b":1})", R"({"a":1,"c":1})"},
          {R"({"a":1,"b":1})", "{}"}});
  expect({R"({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 4}]})", {"3", "4"}, {}});
  expect_refused(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", "#/oneOf");
  expect_refused(R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})", "#/oneOf");  // 1 matches both
  expect_refused(
      R"({"type": "object", "oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}]})",
      "#/oneOf");
}

TEST(JsonSchema, ReferencesLeadInsideTheDocument) {
  expect({R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}})", {"1"}, {"\"a\""}});
  expect({R"({"$ref": "#x", "$defs": {"y": {"$anchor": "x", "type": "integer"}}, "minimum": 3})", {"3"}, {"2"}});
  expect({R"({"$id": "https://a.b/c", "$ref": "https://a.b/c#/$defs/d", "$defs": {"d": {"type": "null"}}})",
          {"null"},
          {"1"}});
  expect(
      {R"({"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["value", "next"]})",
       {R"({"value":1,"next":{"value":2,"next":null}})"},
       {R"({"value":1})", R"({"value":1,"next":{"value":2}})"}});
  expect_refused(R"({"$ref": "#/$defs/a"})", "#/$ref");
  expect_refused(R"({"$ref": "https://example.org/s.json"})", "#/$ref");
  expect_refused(R"({"$ref": "#"})", "#");
  expect_refused(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})",
                 "#/$defs/a");
}

TEST(JsonSchema, RefusalsNameThePlace) {
  expect_refused(R"({"properties": {"a/b": {"maxLenght": 3}}})", "#/properties/a~1b/maxLenght");
  expect_refused(R"({"type": "strin"})", "#/type");
  expect_refused(R"({"properties": {"a": 3}})", "#/properties/a");
  expect_refused(R"({"contains": {"type": "string"}})", "#/contains");
  expect_refused(R"({"if": {"type": "string"}, "then": {"maxLength": 3}})", "#/if");
  expect_refused(R"({"not": {"required": ["a"]}})", "#/not");
  expect_refused(R"({"type": "string", "format": 7})", "#/format");
  expect_refused(R"({"type": "string", "pattern": "("})", "#/pattern");
  expect_refused(R"({"minLength": -1})", "#/minLength");
  expect_refused(R"({"minimum": "3"})", "#/minimum");
  expect_refused(R"({"enum": []})", "#/enum");
  expect_refused(R"({"required": "a"})", "#/required");
  expect_refused(R"({"allOf": []})", "#/allOf");
  expect_refused(R"({"$schema": "http://json-schema.org/draft-04/schema#"})", "#/$schema");
  expect_refused(R"({"properties": {"a": {"$id": "https://a.b/c"}}})", "#/properties/a/$id");
  expect_refused(R"({"nullable": true})", "#/nullable");
  expect_refused(R"({"items": [{}]})", "#/items");
  expect_refused(R"({"$ref": "#/$defs/a", "$defs": {"a": {}}, "unevaluatedProperties": false})",
                 "#/unevaluatedProperties");
  expect_refused("false", "#");
  expect_refused("3", "#");
  EXPECT_EQ(
      refusal(R"({"x-note": 1, "title": "t", "description": "d", "default": 3, "examples": [1], "deprecated": true})"),
      "");
}

TEST(JsonSchema, NoMessageRepeatsMuchOfTheSchema) {
  const std::string key(10'000, 'k');
  EXPECT_LT(refusal(R"({"properties": {")" + key + R"(": {"type": "x"}}})").size(), 400u);
  EXPECT_LT(refusal(R"({"$ref": "#/)" + key + "\"}").size(), 400u);
  EXPECT_LT(refusal(R"({"properties": {")" + key + R"(": {"$ref": "#)" + key + "\"}}}").size(), 500u);
}

std::string many(std::size_t n, const std::string& before, const std::string& each, const std::string& after) {
  std::string out = before;
  for (std::size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ",") + std::string("\"p") + std::to_string(i) + "\"" + each;
  return out + after;
}

TEST(JsonSchema, LimitsHoldOnBothSides) {
  for (const int over : {-1, 0, 1}) {
    const bool fits = over <= 0;
    const auto at = [&](std::size_t n) { return n + static_cast<std::size_t>(over + 1) - 1; };
    SchemaLimits limits;
    const std::string text = R"({"type": "null"})";
    limits.max_bytes = text.size() - static_cast<std::size_t>(over + 1) + 1;
    EXPECT_EQ(refusal(text, limits).empty(), fits) << over;

    std::string deep = "true";
    for (std::size_t i = 0; i < at(limits.max_depth); ++i) deep = R"({"not":)" + deep + "}";
    limits = {};
    EXPECT_EQ(refusal(deep, limits).find("nested more than 64") == std::string::npos, fits) << over;

    limits.max_properties = 20;
    EXPECT_EQ(refusal(many(at(20), R"({"properties": {)", ":{}", "}}"), limits).empty(), fits);
    EXPECT_EQ(refusal(many(at(20), R"({"required": [)", "", "]}"), limits).empty(), fits);
    limits.max_values = 30;
    EXPECT_EQ(refusal(many(at(30), R"({"enum": [)", "", "]}"), limits).empty(), fits);
    limits.max_schemas = 10;
    EXPECT_EQ(refusal(many(at(9), R"({"properties": {)", ":{}", "}}"), limits).empty(), fits);
    limits = {};
    limits.max_shapes =
        12 - static_cast<std::uint32_t>(over + 1) + 1;  // each branch: by itself, in anyOf, as the value
    EXPECT_EQ(refusal(R"({"anyOf": [{"const": 1}, {"const": 2}, {"const": 3}, {"const": 4}]})", limits).empty(), fits);
  }
}

// {"properties": {p0 … pn}, …}
std::string properties(std::size_t n) { return many(n, R"("properties": {)", ":{}", "}"); }

// [{"properties": {"a0": …}}, …]: shapes that a value may have.
std::string shapes(std::size_t n, const std::string& name) {
  std::string out = "[";
  for (std::size_t i = 0; i < n; ++i) {
    out += (i == 0 ? "" : ",") + (R"({"properties": {")" + name) + std::to_string(i) + R"(": {"const": 1}}})";
  }
  return out + "]";
}

std::string counting(std::size_t n, bool backwards = false) {
  std::string out = "[";
  for (std::size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ",") + std::to_string(backwards ? n - 1 - i : i);
  return out + "]";
}

// The least that the schema can be written with.
std::uint64_t steps_of(const std::string& text) {
  std::uint64_t low = 0, high = WriteBudget::kMaxSteps;
  while (low + 1 < high) {
    const std::uint64_t middle = (low + high) / 2;
    (refusal(text, {}, middle).empty() ? high : low) = middle;
  }
  return high;
}

TEST(JsonSchema, WhatAlternativesMultiplyIsCountedBeforeItTakesMemory) {
  const std::string of_values = R"({"enum": )" + counting(5000) + R"(, "anyOf": )";
  const std::string of_names = R"({"required": )" + many(1000, "[", "", "]") + R"(, "anyOf": )";
  const std::string of_items = R"({"items": {"anyOf": )" + shapes(150, "b") + R"(}, "prefixItems": [)";
  std::string in_items = of_items;
  for (int i = 0; i < 900; ++i) in_items += (i == 0 ? "" : ",") + std::string(R"({"enum": [1]})");
  for (const std::string& text : {
           "{" + properties(400) + R"(, "anyOf": )" + shapes(40, "a") + R"(, "allOf": [{"anyOf": )" + shapes(40, "b") +
               "}]}",
           of_values + shapes(900, "a") + "}",
           of_names + shapes(900, "a") + "}",
           in_items + R"(], "anyOf": )" + shapes(900, "a") + "}",
           R"({"properties": {")" + std::string(200'000, 'k') + R"(": {)" + properties(1000) + "}}}",
       }) {
    EXPECT_TRUE(refusal(text).starts_with("schema: # takes more than 2000000 steps to write as a grammar"))
        << text.substr(0, 100) << "\n"
        << refusal(text);
  }
}

TEST(JsonSchema, StepsAreCountedTheSameEachTimeAndOneLessIsRefused) {
  for (const std::string& text :
       {std::string(R"({"type": "null"})"), "{" + properties(30) + "}", R"({"enum": )" + counting(30) + "}",
        "{" + properties(5) + R"(, "anyOf": )" + shapes(6, "a") + R"(, "allOf": [{"anyOf": )" + shapes(7, "b") +
            "}]}"}) {
    const std::uint64_t steps = steps_of(text);
    EXPECT_EQ(refusal(text, {}, steps), "");
    EXPECT_EQ(refusal(text, {}, steps + 1), "");
    EXPECT_EQ(refusal(text, {}, steps - 1),
              "schema: # takes more than " + std::to_string(steps - 1) +
                  " steps to write as a grammar: combine fewer alternatives of many properties or values");
  }
}

TEST(JsonSchema, SchemasOfOneGrammarShareTheirSteps) {
  const std::string text = "{" + properties(30) + "}";
  const std::uint64_t steps = steps_of(text);
  for (const std::uint64_t less : {0u, 1u}) {
    WriteBudget budget(2 * steps - less);
    Rules rules;
    EXPECT_TRUE(json_schema(rules, *parse_schema(text), budget).ok());
    EXPECT_EQ(json_schema(rules, *parse_schema(text), budget).ok(), less == 0);
  }
}

TEST(JsonSchema, TimeEndsWritingAndIsNoFaultOfTheSchema) {
  const std::string text = "{" + properties(1000) + R"(, "anyOf": )" + shapes(8, "a") + "}";
  WriteBudget budget(WriteBudget::kMaxSteps, std::chrono::milliseconds(0));
  Rules rules;
  const auto done = json_schema(rules, *parse_schema(text), budget);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Code::kTimeout);
  EXPECT_EQ(done.error().message, "schema: takes longer than 0 ms to write as a grammar: simplify it");
}

TEST(JsonSchema, StepsGrowWithTheSizeOfEnumsRequiredNamesAndPropertiesAndNoFaster) {
  const auto grows = [](const auto& text) {
    const std::uint64_t once = steps_of(text(200));
    EXPECT_LE(steps_of(text(800)), 5 * once) << text(2);
  };
  grows([](std::size_t n) {
    return R"({"enum": )" + counting(n) + R"(, "allOf": [{"enum": )" + counting(n, true) + "}]}";
  });
  grows([](std::size_t n) {
    return R"({"type": "array", "uniqueItems": true, "items": {"enum": )" + counting(n) + "}}";
  });
  grows([](std::size_t n) { return "{" + properties(n) + many(n, R"(, "required": [)", "", "]}"); });
  grows([](std::size_t n) { return many(n, R"({"dependentRequired": {"a": [)", "", "]}}"); });
  grows([](std::size_t n) { return "{" + properties(n) + R"(, "allOf": [{)" + properties(n) + "}]}"; });
}

TEST(JsonSchema, ValuesOfEnumsAreTheSameHoweverTheyAreWritten) {
  expect({R"({"enum": [1, "1", 2.50, [1, 2], {"a": 1, "b": [0]}, null], )"
          R"("allOf": [{"enum": [1.0, 2.5, {"b": [0.0], "a": 1e0}]}]})",
          {"1", "2.5", R"({"a":1,"b":[0]})"},
          {"\"1\"", "[1,2]", "null"}});
  expect({R"({"enum": [0.1234567890123456789, "a\u00e9"], "allOf": [{"enum": [0.1234567890123456789, "aé"]}]})",
          {"\"aé\""},
          {"\"a\""}});
  expect({R"({"type": "array", "uniqueItems": true, "items": {"enum": [1, 1.0, "1", [1], [1.0]]}})",
          {R"([1,"1",[1]])", "[]"},
          {"[1,1]", "[1,1.0]"}});
  expect_refused(R"({"oneOf": [{"enum": [1, 2]}, {"enum": [3, 2.0]}]})", "#/oneOf");
  expect({R"({"oneOf": [{"enum": [1, 2]}, {"enum": [3, "2"]}]})", {"1", "2", "3", "\"2\""}, {"4"}});
}

TEST(JsonSchema, APatternThatIsTooLargeIsRefusedWhereItStands) {
  SchemaLimits limits;
  limits.max_text_states = 2'000;
  const auto message = refusal(R"({"properties": {"a": {"pattern": "^(a|b|c){500}$", "maxLength": 9}}})", limits);
  EXPECT_TRUE(message.starts_with("schema: #/properties/a needs more than 2000 states")) << message;
}

TEST(JsonSchema, LongChainsOfSchemasAreNoDeepRecursion) {
  std::string chain = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 3000; ++i) {
    chain += "\"d" + std::to_string(i) + R"(": {"type": "object", "properties": {"n": {"$ref": "#/$defs/d)" +
             std::to_string(i + 1) + "\"}}},";
  }
  EXPECT_EQ(refusal(chain + R"("d3000": {"type": "null"}}})"), "");
  std::string in_place = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 3000; ++i)
    in_place += "\"d" + std::to_string(i) + R"(": {"$ref": "#/$defs/d)" + std::to_string(i + 1) + "\"},";
  EXPECT_NE(refusal(in_place + R"("d3000": {"type": "null"}}})").find("nested too deeply"), std::string::npos);
}

TEST(JsonObject, IsAnyObjectAndNothingElse) {
  Rules rules;
  json_object(rules);
  for (const std::string good : {"{}", R"({"a":1})", "{\n  \"a\": {\"b\": [1, 2.5e3, null, \"\\u0041\"]}\n}"}) {
    EXPECT_TRUE(RulesMatch(rules, good).whole()) << good;
  }
  for (const std::string bad : {"", "[]", "1", "{", R"({"a":})", " {}", "{} ", R"({'a':1})", R"({"a":1,})"}) {
    EXPECT_FALSE(RulesMatch(rules, bad).whole()) << bad;
  }
}

}  // namespace
}  // namespace quire::grammar::json_schema_test
