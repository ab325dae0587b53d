#include "api/answer/parts/json_walker.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <random>
#include <string>

namespace quire::api::chat::json_walker_test {
namespace {

// How many bytes are taken, and whether the value is complete then. A number counts as complete at a space behind it.
struct Walked {
  std::size_t bytes = 0;
  bool complete = false;
};
Walked walk(const std::string& text) {
  JsonWalker walker;
  Walked walked;
  while (walked.bytes < text.size() && walker.push(text[walked.bytes])) ++walked.bytes;
  walked.complete = walker.complete() || (walker.push(' ') && walker.complete());
  return walked;
}

bool is_json(const std::string& text) {
  const Walked walked = walk(text);
  return walked.bytes == text.size() && walked.complete;
}

TEST(JsonWalker, TakesEveryKindOfValue) {
  for (const char* text : {"{}", "[]", "\"\"", "true", "false", "null", "0", "-0", "12", "-1.5", "1e9", "1E+9",
                           "0.1e-2", "{\"a\":1}", " { \"a\" : [ 1 , {\"b\" : null} ] , \"c\" : \"\\\"}\\u12aF\\n\" } ",
                           "[[],[[]],{}]", "\"Gr\xC3\xBC\xC3\x9F e\""}) {
    EXPECT_TRUE(is_json(text)) << text;
  }
}

TEST(JsonWalker, RefusesWhatIsNoJson) {
  for (const char* text :
       {"",      "{",     "}",       "{a:1}",       "{\"a\"}",  "{\"a\":}",  "{\"a\":1,}", "{,}", "[1,]",
        "[,1]",  "[1 2]", "01",      "-",           "1.",       ".5",        "1e",         "+1",  "tru",
        "truex", "nul l", "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"", "{\"a\":1]", "[1}",        "1 1", "'a'"}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
}

TEST(JsonWalker, SaysWhereInAnObjectTheTextIs) {
  JsonWalker walker;
  const std::string text = "{\"k\": [1, \"v\"]}";
  std::string keys, wants, depths;
  for (const char c : text) {
    ASSERT_TRUE(walker.push(c));
    keys += walker.in_key() ? 'k' : '.';
    wants += walker.wants_value() ? 'v' : '.';
    depths += static_cast<char>('0' + walker.depth());
  }
  EXPECT_EQ(keys, ".kk............");
  EXPECT_EQ(wants, "....vvv.vv.....");
  EXPECT_EQ(depths, "111111222222210");
}

TEST(JsonWalker, FollowsSixtyFourListsAndNoMore) {
  for (const std::size_t depth : {63u, 64u}) {
    EXPECT_TRUE(is_json(std::string(depth, '[') + std::string(depth, ']'))) << depth;
  }
  EXPECT_EQ(walk(std::string(65, '[')).bytes, 64u);
}

// Against boost.json, on texts made of the pieces that JSON is made of.
TEST(JsonWalker, AgreesWithAParser) {
  constexpr const char* kPieces[] = {"{",       "}", "[",      "]",    ",",    ":", "\"a\"",
                                     "\"\\n\"", "1", "-2.5e3", "true", "null", " ", "0"};
  std::mt19937 random(7);
  int valid = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    const auto pieces = 1 + random() % 7;
    for (std::size_t n = 0; n < pieces; ++n) text += kPieces[random() % std::size(kPieces)];
    boost::system::error_code error;
    boost::json::parse(text, error);
    ASSERT_EQ(is_json(text), !error) << text;
    valid += !error;
  }
  EXPECT_GT(valid, 1000);
}

}  // namespace
}  // namespace quire::api::chat::json_walker_test
