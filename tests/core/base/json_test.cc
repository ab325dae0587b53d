#include "core/base/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/processor_time.h"

namespace quire::json {
namespace {

Value good(const std::string& text) {
  Result<Value> value = parse(text, 64);
  EXPECT_TRUE(value.ok()) << text << ": " << (value.ok() ? "" : value.error().message);
  return value.ok() ? *value : Value();
}

TEST(Json, WhatIsReadIsWrittenAgain) {
  for (const char* text : {"null", "true", "false", "0", "-7", "18446744073709551615", "1.5", "1e+300", "\"\"",
                           "\"a\\n\\\"\"", "[]", "{}", "[1,[2,[3]],{\"a\":[]}]", "{\"b\":1,\"a\":{\"b\":null}}"}) {
    EXPECT_EQ(serialize(good(text)), text);
  }
  EXPECT_EQ(serialize(good(" { \"a\" : [ 1 , 2 ] } ")), "{\"a\":[1,2]}");
}

TEST(Json, NumbersKeepTheirKindAndEveryBit) {
  EXPECT_TRUE(good("9223372036854775807").is_int64());
  EXPECT_TRUE(good("9223372036854775808").is_uint64());
  EXPECT_TRUE(good("18446744073709551616").is_double()) << "beyond 64 bits";
  EXPECT_TRUE(good("1.0").is_double());
  EXPECT_EQ(serialize(good("1.0")), "1.0");
  EXPECT_EQ(good("0.1").get_double(), 0.1);
  EXPECT_EQ(good("5e-324").get_double(), 5e-324);
  EXPECT_EQ(good("1.7976931348623157e308").get_double(), 1.7976931348623157e308);
  EXPECT_EQ(good("[0.30000000000000004]").get_array()[0].get_double(), 0.1 + 0.2);
  EXPECT_EQ(good("-3").as_double(), -3.0);
}

TEST(Json, WhatIsNoJsonIsRefused) {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "{a:1}", "nul", "1 2", "\"\\ud800\"", "\"\xff\"", "'a'", "01"}) {
    const auto value = parse(text, 64);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_TRUE(value.error().message.starts_with("is not JSON: ")) << value.error().message;
  }
}

TEST(Json, DepthHasALimit) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse(nested(7), 8).ok());
  EXPECT_TRUE(parse(nested(8), 8).ok());
  const auto deep = parse(nested(9), 8);
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(deep.error().message, "is nested more than 8 deep");
}

TEST(Json, OfMembersWithOneNameTheLastValueCountsInTheFirstPlace) {
  EXPECT_EQ(serialize(good("{\"a\":1,\"b\":2,\"a\":3}")), "{\"a\":3,\"b\":2}");
}

TEST(Json, MembersAreFoundHoweverManyThereAre) {
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 18u, 100u}) {
    Object object;
    for (std::size_t i = 0; i < size; ++i) object["name " + std::to_string(i)] = static_cast<std::int64_t>(i);
    EXPECT_EQ(object.size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_TRUE(object.contains("name " + std::to_string(i)));
      EXPECT_EQ(object.at("name " + std::to_string(i)).get_int64(), static_cast<std::int64_t>(i));
    }
    EXPECT_EQ(object.if_contains("another"), nullptr);
    std::size_t place = 0;
    for (const Member& member : object) EXPECT_EQ(member.name, "name " + std::to_string(place++));
  }
}

TEST(Json, WhatIsErasedIsGoneAndTheOthersAreFound) {
  for (const std::size_t size : {3u, 17u, 18u, 40u}) {
    Object object;
    for (std::size_t i = 0; i < size; ++i) object[std::to_string(i)] = static_cast<std::int64_t>(i);
    object.erase("1");
    object.erase("none");
    EXPECT_EQ(object.size(), size - 1);
    EXPECT_FALSE(object.contains("1"));
    EXPECT_EQ(object.at("2").get_int64(), 2);
    object["1"] = nullptr;
    EXPECT_EQ((object.end() - 1)->name, "1");
  }
}

TEST(Json, ACopyIsAnotherOne) {
  Object object;
  for (int i = 0; i < 30; ++i) object[std::to_string(i)] = i;
  Object copy = object;
  copy["29"] = "changed";
  copy["30"] = 30;
  EXPECT_EQ(object.at("29").get_int64(), 29);
  EXPECT_FALSE(object.contains("30"));
  EXPECT_TRUE(copy.at("29").is_text("changed"));
}

// Names that Boost.JSON's hash puts into one bucket took 41 s in 1.8 MB. Here no names are worse than any others: a
// hundred thousand of them take as long as any other hundred thousand.
TEST(Json, ManyMembersTakeAboutTheTimeOfTheirBytes) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += (i > 0 ? ",\"" : "\"") + std::string(8, 'a') + std::to_string(i) + "\":1";
  text += "}";
  const auto begun = processor_time();
  EXPECT_EQ(good(text).get_object().size(), 100'000u);
  EXPECT_LT(processor_time() - begun, std::chrono::seconds(5));
}

}  // namespace
}  // namespace quire::json
