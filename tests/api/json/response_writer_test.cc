#include "api/json/response_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <boost/json.hpp>
#include <charconv>
#include <limits>
#include <random>
#include <string>

namespace quire::api::response_writer_test {
namespace {

std::string written(double value) {
  std::string out;
  JsonWriter(out).number(value);
  return out;
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
}  // namespace quire::api::response_writer_test
