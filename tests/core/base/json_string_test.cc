#include "core/base/json_string.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <string>

namespace quire {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
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

}  // namespace
}  // namespace quire
