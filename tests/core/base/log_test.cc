#include "core/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace quire {
namespace {

namespace json = boost::json;

TEST(LogSafe, LeavesPlainTextAlone) { EXPECT_EQ(log_safe("GET /v1/models ~ é"), "GET /v1/models ~ é"); }

TEST(LogSafe, LetsNoControlCharacterThrough) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string safe = log_safe(std::string(1, static_cast<char>(byte)));
    for (const char c : safe) {
      const auto out = static_cast<unsigned char>(c);
      EXPECT_TRUE(out >= 0x20 && out != 0x7f) << "byte " << byte;
    }
  }
}

TEST(LogSafe, EscapesWhatWouldStartALineOrAColour) {
  EXPECT_EQ(log_safe("a\r\nb\x1b[31m\x7f"), "a\\x0d\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(log_safe(std::string("\0x", 2)), "\\x00x");
}

TEST(LogSafe, CutsPast200BytesAndSaysSo) {
  EXPECT_EQ(log_safe(std::string(199, 'a')), std::string(199, 'a'));
  EXPECT_EQ(log_safe(std::string(200, 'a')), std::string(200, 'a'));
  EXPECT_EQ(log_safe(std::string(201, 'a')), std::string(200, 'a') + "...");
}

TEST(Log, WritesOneLineWithTheEventFirst) {
  set_log_level(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  log_info("request_done", {{"id", 7}, {"tokens", 12u}});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(" info request_done id=7 tokens=12\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Log, QuotesValuesThatAReaderWouldSplitOrMiss) {
  ::testing::internal::CaptureStderr();
  log_info("e",
           {{"a", "plain/é"}, {"b", "two words"}, {"c", ""}, {"d", "k=v"}, {"e", "\"\n"}, {"f", true}, {"g", 1.23456}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::EndsWith(R"( e a=plain/é b="two words" c="" d="k=v" e="\"\n" f=true g=1.235)"
                                  "\n"));
}

TEST(Log, TellsTheOffsetOfItsTimes) {
  ::testing::internal::CaptureStderr();
  log_info("e", "message");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info e message\n)")))
      << text;
}

TEST(Log, SaysNothingBelowItsLevel) {
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kError);
  log_info("quiet", "x={}", 1);
  log_warn("quiet", "x={}", 1);
  set_log_level(LogLevel::kOff);
  log_error("quiet", "x={}", 1);
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Log, IsOneLineWhateverItIsMadeOf) {
  for (const std::string hostile :
       {"a\nb", "a\r\nb", "\x1b[2K\rfake", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", "\x0b\x0c\x1c\x1d\x1e"}) {
    ::testing::internal::CaptureStderr();
    log_info("note", "{}", hostile + "2026-01-01T00:00:00.000 info request id=forged");
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_EQ(text.find(hostile), std::string::npos) << text;
    for (const char c : text.substr(0, text.size() - 1)) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20) << text;
  }
}

class JsonLog : public ::testing::Test {
 protected:
  JsonLog() { set_log_format(LogFormat::kJson); }
  ~JsonLog() override { set_log_format(LogFormat::kText); }
  // The one line that `write` logs, which is an object.
  template <typename Write>
  static json::object line(Write write) {
    ::testing::internal::CaptureStderr();
    write();
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    json::error_code error;
    json::value parsed = json::parse(text, error);
    EXPECT_FALSE(error) << text;
    return parsed.is_object() ? parsed.as_object() : json::object();
  }
};

TEST_F(JsonLog, MakesMembersOfFields) {
  const json::object told = line([] {
    log_info("request", {{"id", "12"},
                         {"status", 200},
                         {"ms", 1.25},
                         {"said", std::uint64_t{7}},
                         {"share", -0.5},
                         {"whole", true},
                         {"model", "a b=c"},
                         {"none", ""}});
  });
  EXPECT_EQ(told.at("level"), "info");
  EXPECT_EQ(told.at("event"), "request");
  EXPECT_EQ(told.at("id"), "12") << "a text stays one";
  EXPECT_EQ(told.at("status"), 200);
  EXPECT_EQ(told.at("ms").to_number<double>(), 1.25);
  EXPECT_EQ(told.at("said").to_number<int>(), 7);
  EXPECT_EQ(told.at("share").to_number<double>(), -0.5);
  EXPECT_EQ(told.at("whole"), true);
  EXPECT_EQ(told.at("model"), "a b=c");
  EXPECT_EQ(told.at("none"), "");
  EXPECT_FALSE(told.contains("message"));
}

TEST_F(JsonLog, MakesAMemberOfAMessage) {
  for (const auto& [text, write] : std::vector<std::pair<std::string, void (*)()>>{
           {"7 free", [] { log_warn("e", "{} free", 7); }}, {"", [] { log_warn("e", ""); }}}) {
    const json::object told = line(write);
    EXPECT_EQ(told.at("message"), text.c_str());
    EXPECT_EQ(told.at("level"), "warning");
  }
}

TEST_F(JsonLog, SaysWhenToTheMillisecondAndInWhichZone) {
  const json::object told = line([] { log_error("e", {{"a", 1}}); });
  const std::string time(told.at("time").as_string());
  EXPECT_TRUE(std::regex_match(time, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d)"))) << time;
}

TEST_F(JsonLog, IsJsonWhateverItIsMadeOf) {
  std::mt19937 random(1);  // the seed is the test
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 24, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? "\"\\\n\r{}\xe2"[random() % 7] : random());
    const json::object told = line([&] { log_info("e", {{"a", bytes}, {"b", 1}}); });
    EXPECT_EQ(told.size(), 5u) << "no member comes of what a value holds";
    EXPECT_EQ(told.at("b"), 1);
    EXPECT_EQ(line([&] { log_info("e", "{}", bytes); }).size(), 4u);
  }
}

TEST_F(JsonLog, NumbersThatJsonDoesNotHaveAreTexts) {
  const json::object told = line([] { log_info("e", {{"a", std::nan("")}, {"b", HUGE_VAL}}); });
  EXPECT_EQ(told.at("a"), "nan");
  EXPECT_EQ(told.at("b"), "inf");
}

}  // namespace
}  // namespace quire
