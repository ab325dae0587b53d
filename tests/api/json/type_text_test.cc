#include "api/json/type_text.h"

#include <gtest/gtest.h>

namespace quire::api {
namespace {

using Types = std::vector<std::string_view>;

TEST(TypeText, AlternativesAreSeparatedOutsideOfListsAndMaps) {
  EXPECT_EQ(alternatives_of("string"), (Types{"string"}));
  EXPECT_EQ(alternatives_of("string|[integer|null]|{number|string}|null"),
            (Types{"string", "[integer|null]", "{number|string}", "null"}));
  EXPECT_EQ(alternatives_of("[[integer]|string]"), (Types{"[[integer]|string]"}));
}

TEST(TypeText, APlainTypeHasEachKindOnceAndNoNames) {
  EXPECT_EQ(plain_type("string|[string]|[[integer]]"), "string|array");
  EXPECT_EQ(plain_type("'auto'|'none'|ToolChoice"), "string|object");
  EXPECT_EQ(plain_type("{number}|object"), "object");
  EXPECT_EQ(plain_type("boolean"), "boolean");
}

}  // namespace
}  // namespace quire::api
