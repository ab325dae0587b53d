#include "core/base/readable_json.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace quire::readable_json_test {
namespace {

TEST(ReadableJson, WhatNoParserHoldsIsWrittenSoThatItDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"1000000000000000019884624838656", "1000000000000000019884624838656.0"},
      {"-1000000000000000019884624838656", "-1000000000000000019884624838656.0"},
      {"18446744073709551616", "18446744073709551616.0"},
      {"-9223372036854775809", "-9223372036854775809.0"},
      {"1e400", "1.7976931348623157e308"},
      {"-1E+400", "-1.7976931348623157e308"},
      {"1e99999999999", "1.7976931348623157e308"},
      {"1e-99999999999", "0"},
      {"-2.5E-400", "0"},
      {"0e99999999999", "0"},
      {"0.000e99999999999", "0"}};
  for (const auto& [given, expected] : cases) {
    EXPECT_EQ(readable_json(given), expected);
    const std::string around = std::string("{\"a\":[") + given + ",1]}";
    EXPECT_EQ(readable_json(around), std::string("{\"a\":[") + expected + ",1]}");
  }
  const std::string long_one = "1" + std::string(400, '0');
  EXPECT_EQ(readable_json(long_one), "1.7976931348623157e308");
}

TEST(ReadableJson, WhetherANumberIsTooLargeOrTooSmallIsDecidedByItsSizeNotByItsExponentsSign) {
  const std::string zeros(400, '0');
  EXPECT_EQ(readable_json("0." + zeros + "1"), "0");
  EXPECT_EQ(readable_json("-0." + zeros + "1"), "0");
  EXPECT_EQ(readable_json("0." + zeros + "1e+5"), "0");
  EXPECT_EQ(readable_json("0." + zeros + "1e99999999999999999999"), "1.7976931348623157e308");
  EXPECT_EQ(readable_json("1" + zeros + "e-50"), "1.7976931348623157e308");
  EXPECT_EQ(readable_json("1" + zeros + ".5e-800"), "0");
  EXPECT_EQ(readable_json("-1" + zeros + ".0"), "-1.7976931348623157e308");
  EXPECT_EQ(readable_json("0." + zeros + "1e401"), "0." + zeros + "1e401");
}

TEST(ReadableJson, WhatPythonAndEditorsWriteIsJsonThen) {
  EXPECT_EQ(readable_json(R"({"a": Infinity, "b": [-Infinity, NaN]})"),
            R"({"a": 1.7976931348623157e308, "b": [-1.7976931348623157e308, null]})");
  EXPECT_EQ(readable_json("\xEF\xBB\xBF{}"), "{}");
  EXPECT_EQ(readable_json("{}\xEF\xBB\xBF"), "{}\xEF\xBB\xBF");
}

TEST(ReadableJson, AllElseStaysWhatItIs) {
  for (const char* json : {"",
                           "0",
                           "-0",
                           "1",
                           "18446744073709551615",
                           "-9223372036854775808",
                           "1.5",
                           "1E+30",
                           "1e-30",
                           "{\"a\": true}",
                           R"({"1000000000000000019884624838656": "1e400", "b": "\"1e400", "c\\": 3})",
                           "\"1e400",
                           "\"1e400\\",
                           "[1,2,]",
                           "01",
                           "-",
                           "1.",
                           "1e",
                           "1e+",
                           "--1",
                           ".5",
                           R"({"a": "NaN, -Infinity and 1e400"})",
                           "1-2"}) {
    EXPECT_EQ(readable_json(json), json);
  }
}

TEST(ReadableJson, ATextThatIsReadAnywayIsTheSameAndOneThatIsNotIsReadThen) {
  const std::string text = R"({"a": [1, -2, 3.25, 1e5, {"b": "x\u00e9\\"}], "c": null, "d": 12345678901234567})";
  EXPECT_EQ(readable_json(text), text);
  EXPECT_EQ(boost::json::parse(readable_json(R"({"n": 1e400})")).at("n").as_double(), 1.7976931348623157e308);
}

}  // namespace
}  // namespace quire::readable_json_test
