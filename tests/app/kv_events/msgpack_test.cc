#include "app/kv_events/msgpack.h"

#include <gtest/gtest.h>

#include <string>

namespace quire::app {
namespace {

template <typename Write>
std::string packed(Write write) {
  std::string out;
  MsgpackWriter writer(out);
  write(writer);
  return out;
}

std::string number(std::uint64_t value) {
  return packed([value](MsgpackWriter& writer) { writer.number(value); });
}
std::string text(std::size_t size) {
  return packed([size](MsgpackWriter& writer) { writer.text(std::string(size, 'x')); }).substr(0, 6);
}
std::string array(std::size_t size) {
  return packed([size](MsgpackWriter& writer) { writer.array(size); });
}
std::string map(std::size_t size) {
  return packed([size](MsgpackWriter& writer) { writer.map(size); });
}

using namespace std::string_literals;

// Bytes as the specification's tables have them, at the edges of every format.
TEST(Msgpack, NumbersTakeTheFewestBytes) {
  EXPECT_EQ(number(0), "\x00"s);
  EXPECT_EQ(number(127), "\x7f"s);
  EXPECT_EQ(number(128), "\xcc\x80"s);
  EXPECT_EQ(number(255), "\xcc\xff"s);
  EXPECT_EQ(number(256), "\xcd\x01\x00"s);
  EXPECT_EQ(number(65535), "\xcd\xff\xff"s);
  EXPECT_EQ(number(65536), "\xce\x00\x01\x00\x00"s);
  EXPECT_EQ(number(4294967295), "\xce\xff\xff\xff\xff"s);
  EXPECT_EQ(number(4294967296), "\xcf\x00\x00\x00\x01\x00\x00\x00\x00"s);
  EXPECT_EQ(number(~std::uint64_t{0}), "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"s);
}

TEST(Msgpack, SizesOfTextsArraysAndMapsChangeTheirFormAtTheirLimits) {
  EXPECT_EQ(text(0), "\xa0"s);
  EXPECT_EQ(text(31).substr(0, 1), "\xbf"s);
  EXPECT_EQ(text(32).substr(0, 2), "\xd9\x20"s);
  EXPECT_EQ(text(255).substr(0, 2), "\xd9\xff"s);
  EXPECT_EQ(text(256).substr(0, 3), "\xda\x01\x00"s);
  EXPECT_EQ(text(65535).substr(0, 3), "\xda\xff\xff"s);
  EXPECT_EQ(text(65536).substr(0, 5), "\xdb\x00\x01\x00\x00"s);
  EXPECT_EQ(array(0), "\x90"s);
  EXPECT_EQ(array(15), "\x9f"s);
  EXPECT_EQ(array(16), "\xdc\x00\x10"s);
  EXPECT_EQ(array(65535), "\xdc\xff\xff"s);
  EXPECT_EQ(array(65536), "\xdd\x00\x01\x00\x00"s);
  EXPECT_EQ(map(0), "\x80"s);
  EXPECT_EQ(map(15), "\x8f"s);
  EXPECT_EQ(map(16), "\xde\x00\x10"s);
  EXPECT_EQ(map(65536), "\xdf\x00\x01\x00\x00"s);
}

TEST(Msgpack, RealsHaveEightBytesAndNilOne) {
  EXPECT_EQ(packed([](MsgpackWriter& writer) { writer.real(1.0).real(-2.5).nil(); }),
            "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xcb\xc0\x04\x00\x00\x00\x00\x00\x00\xc0"s);
}

}  // namespace
}  // namespace quire::app
