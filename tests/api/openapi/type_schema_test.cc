#include "api/openapi/type_schema.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>

#include "api/json/type_text.h"

namespace quire::api::type_schema_test {
namespace {

namespace json = boost::json;

json::value schema_of(std::string_view type, bool may_be_null = false) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  write_type(writer, type, may_be_null);
  writer.end_object();
  return json::parse(text);
}

template <typename Write>
json::value written(Write write) {
  std::string text;
  JsonWriter writer(text);
  write(writer);
  return json::parse(text);
}

TEST(TypeSchema, PlainTypesShareOneKeyword) {
  EXPECT_EQ(schema_of("string"), json::parse(R"({"type":"string"})"));
  EXPECT_EQ(schema_of("integer", true), json::parse(R"({"type":["integer","null"]})"));
  EXPECT_EQ(schema_of("string|[integer]|null"),
            json::parse(R"({"type":["string","array","null"],"items":{"type":"integer"}})"));
  EXPECT_EQ(schema_of("{number}"), json::parse(R"({"type":"object","additionalProperties":{"type":"number"}})"));
  EXPECT_EQ(schema_of("any"), json::parse("{}"));
}

TEST(TypeSchema, TypesThatDifferInMoreThanTheirKeywordAreAlternatives) {
  EXPECT_EQ(schema_of("[string]|[integer]"), json::parse(R"({"anyOf":[{"type":"array","items":{"type":"string"}},
                                     {"type":"array","items":{"type":"integer"}}]})"));
  EXPECT_EQ(schema_of("Usage|null"),
            json::parse(R"({"anyOf":[{"$ref":"#/components/schemas/Usage"},{"type":"null"}]})"));
  EXPECT_EQ(schema_of("Usage"), json::parse(R"({"$ref":"#/components/schemas/Usage"})"));
}

TEST(TypeSchema, WordsAreAConstantOrAnEnumeration) {
  EXPECT_EQ(schema_of("'list'"), json::parse(R"({"type":"string","const":"list"})"));
  EXPECT_EQ(schema_of("'a'|'b'"), json::parse(R"({"type":"string","enum":["a","b"]})"));
  EXPECT_EQ(schema_of("'a'|'b'|null"),
            json::parse(R"({"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]})"));
}

constexpr Member kShared[] = {{"id", "string", "the id", R"("x")"}};
constexpr Member kOwn[] = {
    {"kind", "'thing'", "the kind"},
    {"counts?", "[integer]", "counts"},
    {"given?", "integer", "a number", "3"},
};

TEST(TypeSchema, AShapeRequiresTheMembersThatAreAlwaysThere) {
  const json::value schema = written([](JsonWriter& json) {
    write_shape(json, {"Thing", "A thing.", kShared, kOwn, {}, true});
  });
  EXPECT_EQ(schema.at("required"), json::parse(R"(["id","kind"])"));
  EXPECT_EQ(schema.at("properties").at("counts").at("items").at("type"), "integer");
  EXPECT_EQ(schema.at("properties").as_object().size(), 4u);
  EXPECT_EQ(schema.at("additionalProperties"), false);
}

TEST(TypeSchema, AnExampleIsMadeOfTheFirstAlternatives) {
  const auto example = [](std::string_view type) {
    return written([type](JsonWriter& json) { write_example(json, type); });
  };
  EXPECT_EQ(example("'a'|'b'"), "a");
  EXPECT_EQ(example("['a']"), json::parse(R"(["a"])"));
  EXPECT_EQ(example("null"), json::value());
  const json::value error = example("AnthropicError");
  EXPECT_EQ(error.at("type"), "error");
  EXPECT_TRUE(error.at("error").as_object().contains("message"));
  EXPECT_FALSE(example("ChatDelta").as_object().contains("tool_calls")) << "it may be absent and has no example";
}

// Every name in a type, at any depth.
void add_names(std::string_view type, std::set<std::string>& names) {
  for (const std::string_view one : alternatives_of(type)) {
    if (one.front() == '[' || one.front() == '{') {
      add_names(one.substr(1, one.size() - 2), names);
    } else if (one.front() >= 'A' && one.front() <= 'Z') {
      names.emplace(one);
    }
  }
}

TEST(TypeSchema, EveryNameInAShapeIsAShapeAndNoTwoHaveOneName) {
  std::set<std::string> known;
  std::set<std::string> used;
  for (const auto group : all_shapes()) {
    for (const Shape& shape : group) {
      EXPECT_TRUE(known.emplace(shape.name).second) << shape.name;
      if (!shape.type.empty()) add_names(shape.type, used);
      for (const auto members : {shape.shared, shape.members}) {
        for (const Member& member : members) add_names(member.type, used);
      }
    }
  }
  for (const std::string& name : used) EXPECT_TRUE(known.contains(name)) << name;
  EXPECT_GT(used.size(), 40u);
}

}  // namespace
}  // namespace quire::api::type_schema_test
