#include "core/base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace quire {
namespace {

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
  testing::internal::CaptureStderr();
  log_info("request_done", "id={} tokens={}", 7, 12);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(" info request_done id=7 tokens=12\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Log, SaysNothingBelowItsLevel) {
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::kError);
  log_info("quiet", "x={}", 1);
  log_warn("quiet", "x={}", 1);
  set_log_level(LogLevel::kOff);
  log_error("quiet", "x={}", 1);
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace quire
