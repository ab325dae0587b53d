// Objects that are not spelled in JSON: every text of the grammar has values that the schema allows.
#include <gtest/gtest.h>

#include <string>

#include "core/grammar/grammar.h"
#include "core/grammar/json_schema.h"
#include "tests/core/grammar/matching.h"
#include "tests/support/patient.h"

namespace quire::grammar::spelled_object_test {
namespace {

constexpr MemberSpelling kTags = {"<p=", ">", ">", "</p>", "</p>", "", "</p>", "<p="};
constexpr MemberSpelling kQuotes = {"", ":'", ":", "'", "", ",", "'"};
constexpr MemberSpelling kKeywords = {"", "=", "=", "", "", ", ", ""};

Result<RuleId> written(Rules& rules, const std::string& schema, const MemberSpelling& spelling) {
  WriteBudget budget;
  const auto is_text = [](std::string_view name) { return name == "to" || name == "t"; };
  return spelled_object(rules, *json::parse(schema, 16), spelling, is_text, budget);
}

bool takes(const std::string& schema, const MemberSpelling& spelling, const std::string& text) {
  Rules rules;
  const Result<RuleId> root = written(rules, schema, spelling);
  EXPECT_TRUE(root.ok()) << (root.ok() ? "" : root.error().message);
  const auto grammar = Grammar::compile(rules, testing::byte_vocabulary(), quire::testing::kPatient);
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  return testing::matches(*grammar, text);
}

std::string refusal(const std::string& schema, const MemberSpelling& spelling) {
  Rules rules;
  const Result<RuleId> root = written(rules, schema, spelling);
  return root.ok() ? "" : root.error().message;
}

constexpr const char* kTrip = R"({"type": "object", "required": ["to"], "properties": {
    "to": {"type": "string"}, "days": {"type": "integer", "minimum": 2}, "note": {"type": ["string", "null"]}}})";

TEST(SpelledObject, HasItsMembersInTheOrderOfTheSchema) {
  EXPECT_TRUE(takes(kTrip, kTags, "<p=to>Oslo</p>"));
  EXPECT_TRUE(takes(kTrip, kTags, "<p=to></p><p=days>3</p>"));
  EXPECT_FALSE(takes(kTrip, kTags, ""));
  EXPECT_FALSE(takes(kTrip, kTags, "<p=days>3</p><p=to>Oslo</p>"));
  EXPECT_FALSE(takes(kTrip, kTags, "<p=to>Oslo</p><p=to>Oslo</p>"));
  EXPECT_FALSE(takes(kTrip, kTags, "<p=to>Oslo</p><p=by>sea</p>"));
  EXPECT_TRUE(takes(kTrip, kQuotes, "to:'Os\"lo',days:3"));
  EXPECT_TRUE(takes(kTrip, kKeywords, "to=\"Oslo\", days=3, note=null"));
  EXPECT_FALSE(takes(kTrip, kKeywords, "to=Oslo"));
}

TEST(SpelledObject, HoldsValuesToTheirSchema) {
  EXPECT_FALSE(takes(kTrip, kTags, "<p=to>Oslo</p><p=days>1</p>"));
  EXPECT_FALSE(takes(kTrip, kTags, "<p=to>Oslo</p><p=days>three</p>"));
  EXPECT_FALSE(takes(kTrip, kTags, "<p=to>O</p>slo</p>"));
  EXPECT_TRUE(takes(kTrip, kTags, "<p=to>O</p slo\n<p </p>"));
  EXPECT_FALSE(takes(kTrip, kTags, "<p=to>O<p=</p>")) << "the mark of the next key";
  const char* const pattern =
      R"({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[ab]+$", "maxLength": 3}}})";
  EXPECT_TRUE(takes(pattern, kTags, "<p=a>aba</p>"));
  EXPECT_FALSE(takes(pattern, kTags, "<p=a>abab</p>"));
  EXPECT_FALSE(takes(pattern, kTags, "<p=a>c</p>"));
  const char* const values = R"({"type": "object", "properties": {"a": {"enum": ["x", 1, null, {"b": 2}]}}})";
  for (const char* value : {"x", "1", "null", "{\"b\": 2}"}) {
    EXPECT_TRUE(takes(values, kTags, "<p=a>" + std::string(value) + "</p>")) << value;
  }
  EXPECT_FALSE(takes(values, kTags, "<p=a>y</p>"));
  EXPECT_TRUE(takes(values, kQuotes, "a:'x'") && takes(values, kQuotes, "a:1") && !takes(values, kQuotes, "a:x"));
}

TEST(SpelledObject, WritesNoStringThatIsReadAsAnotherType) {
  const char* const mixed = R"({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"const": 7}]}}})";
  for (const char* text : {"7", "seven", "7 up", "nullable", ""}) {
    EXPECT_TRUE(takes(mixed, kTags, "<p=a>" + std::string(text) + "</p>")) << text;
  }
  for (const char* text : {"8", " 8 ", "null", "True", "[x", " {"}) {
    EXPECT_FALSE(takes(mixed, kTags, "<p=a>" + std::string(text) + "</p>")) << text;
  }
  EXPECT_TRUE(takes(mixed, kQuotes, "a:'8'")) << "the quotes tell";
  const char* const texts = R"({"type": "object", "properties": {"t": {"type": "string"}, "u": {"type": "string"}}})";
  EXPECT_TRUE(takes(texts, kTags, "<p=t>8</p>")) << "a reader takes it for a string";
  EXPECT_FALSE(takes(texts, kTags, "<p=u>8</p>"));
}

TEST(SpelledObject, FollowsReferencesAndTakesOtherMembersWhereTheyAreAllowed) {
  const char* const schema =
      R"({"$defs": {"C": {"enum": ["x"]}}, "type": "object", "properties": {"c": {"$ref": "#/$defs/C"}},
      "additionalProperties": {"type": "integer"}})";
  EXPECT_TRUE(takes(schema, kTags, "<p=c>x</p><p=d>1</p><p=_e2>2</p>"));
  EXPECT_FALSE(takes(schema, kTags, "<p=d>x</p>"));
  EXPECT_FALSE(takes(schema, kTags, "<p=d e>1</p>"));
  EXPECT_TRUE(takes(R"({"type": "object"})", kTags, "<p=a>any</p><p=b>[1]</p>"));
  EXPECT_TRUE(takes("true", kTags, ""));
}

TEST(SpelledObject, RefusesWhatItCannotSpell) {
  EXPECT_NE(refusal(R"({"type": "object", "properties": {"a b": {}}})", kTags).find("\"a b\""), std::string::npos);
  EXPECT_NE(refusal(R"({"enum": [{"a": 1}]})", kTags).find("one by one"), std::string::npos);
  EXPECT_NE(refusal("false", kTags).find("is false"), std::string::npos);
  EXPECT_NE(refusal(R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 60000}}})", kTags), "");
}

}  // namespace
}  // namespace quire::grammar::spelled_object_test
