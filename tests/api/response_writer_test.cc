#include "api/openai/response_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <boost/json.hpp>
#include <charconv>
#include <limits>
#include <random>
#include <string>

namespace quire::api::openai {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string written(double value) {
  std::string out;
  JsonWriter(out).number(value);
  return out;
}

TEST(JsonString, EscapesWhatMustBe) {
  EXPECT_EQ(json_of(""), R"("")");
  EXPECT_EQ(json_of("plain text /"), R"("plain text /")");
  EXPECT_EQ(json_of("\"\\\n\r\t"), R"("\"\\\n\r\t")");
  EXPECT_EQ(json_of(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
}

TEST(JsonString, KeepsUtf8) {
  const std::string text = "é 漢 😀 \xEF\xBF\xBD \xED\x9F\xBF \xEE\x80\x80 \xF4\x8F\xBF\xBF";
  EXPECT_EQ(json_of(text), '"' + text + '"');
}

TEST(JsonString, TurnsWhatIsNotUtf8IntoReplacements) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(json_of("a\x80z"), "\"a" + r + "z\"");
  EXPECT_EQ(json_of("\xC0\xAF"), '"' + r + r + '"');                  // overlong
  EXPECT_EQ(json_of("\xED\xA0\x80"), '"' + r + r + r + '"');          // a surrogate
  EXPECT_EQ(json_of("\xF4\x90\x80\x80"), '"' + r + r + r + r + '"');  // past U+10FFFF
  EXPECT_EQ(json_of("\xE6\xBC"), '"' + r + '"');                      // cut short
  EXPECT_EQ(json_of("\xF0\x9F\x98z"), '"' + r + "z\"");               // maximal subpart
}

TEST(JsonString, NeverLetsABadByteThrough) {
  std::mt19937 random(1);  // the seed is the test
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, ' ');
    for (char& c : bytes) c = static_cast<char>(random());
    boost::system::error_code error;
    boost::json::parse(json_of(bytes), error);  // it checks UTF-8
    EXPECT_FALSE(error) << json_of(bytes);
  }
}

TEST(JsonNumber, IsTheShortestThatReadsBackTheSame) {
  EXPECT_EQ(written(2.5), "2.5");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(0.0), "0");
  EXPECT_EQ(written(1e300), "1e+300");
  std::mt19937_64 random(2);
  for (int round = 0; round < 1000; ++round) {
    const double value = std::bit_cast<double>(random());
    if (!(value - value == 0.0)) continue;
    const std::string text = written(value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    EXPECT_EQ(back, value) << text;
  }
}

TEST(JsonNumber, IsNeverNan) {
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonWriter, PutsCommasWhereTheyBelong) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("a").begin_array().number(std::int64_t{-1}).null().begin_object().end_object().boolean(true).end_array();
  json.key("b").begin_object().key("c").text("d").key("e").number(std::uint64_t{18446744073709551615u}).end_object();
  json.end_object();
  EXPECT_EQ(out, R"({"a":[-1,null,{},true],"b":{"c":"d","e":18446744073709551615}})");
}

TEST(JsonWriter, TakesWhatIsWrittenAlreadyAsAValueAndAsMembers) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("a").written("[1]").written(R"("b":2,"c":3)").key("d").null().end_object();
  EXPECT_EQ(out, R"({"a":[1],"b":2,"c":3,"d":null})");
}

}  // namespace
}  // namespace quire::api::openai
