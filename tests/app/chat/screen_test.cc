#include "app/chat/screen.h"

#include <gtest/gtest.h>

#include <string>

namespace quire::app {
namespace {

TEST(Shown, LeavesTextAsItIs) { EXPECT_EQ(shown("a\tb\nü 日本 \xf0\x9f\x98\x80"), "a\tb\nü 日本 \xf0\x9f\x98\x80"); }

TEST(Shown, ObeysNoControlCharacter) {
  EXPECT_EQ(shown("\x1b[2J\r\x07\x7f"), "^[[2J^M^G^?");
  EXPECT_EQ(shown("a\xc2\x9b"
                  "31mb"),
            "a31mb")
      << "U+009B begins a sequence, too";
  EXPECT_EQ(shown(std::string("\0", 1)), "^@");
  for (int byte = 0; byte < 256; ++byte) {
    for (const char c : shown(std::string(1, static_cast<char>(byte)))) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') << byte;
      EXPECT_NE(c, '\x7f');
    }
  }
}

}  // namespace
}  // namespace quire::app
