#include "api/http/chunk_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace quire::api::http::chunk_lines_test {
namespace {

TEST(ChunkLines, AreSeenWithTheirChunkHoweverItComes) {
  ChunkLines lines;
  EXPECT_EQ(lines.allow("A"), 0u);
  EXPECT_EQ(lines.allow("A;x=y\r"), 0u);
  EXPECT_EQ(lines.allow("A;x=y\r\n01"), 9u);
  lines.taken(9);
  EXPECT_EQ(lines.allow("23456789\r\n0\r\n\r\n"), 8u) << "the chunk, and not what is behind it";
  lines.taken(8);
  EXPECT_EQ(lines.allow("\r\n0"), 0u);
  EXPECT_EQ(lines.allow("\r\n0\r\nX: y\r\n\r\n"), 13u) << "with the trailers";
}

TEST(ChunkLines, StayWhereNothingWasTaken) {
  ChunkLines lines;
  EXPECT_EQ(lines.allow("5\r\nab"), 5u);
  lines.taken(3);
  EXPECT_EQ(lines.allow("ab"), 2u);
}

TEST(ChunkLines, EndWithCarriageReturnAndLineFeedAlone) {
  for (const char* bad : {"5\nabc", "5;a=\"\n\"\r\nabc", "5;a=\"b\r\nabc", "5\r\r\nabc", "\r\nabc", "\nabc", " 5\r\n",
                          "5 \r\n", "0x5\r\n", "-5\r\n", "5;a=\x01\r\n", ";a\r\n"}) {
    EXPECT_FALSE(ChunkLines().allow(bad)) << bad;
  }
  for (const char* good : {"5\r\n", "5;a\r\n", "5;a=b\r\n", "5;a=\"b;\\\"c\"\r\n", "000005\r\n", "aB\r\n"}) {
    EXPECT_TRUE(ChunkLines().allow(good)) << good;
  }
}

TEST(ChunkLines, AreHeldToTheirLimits) {
  for (const std::size_t digits : {14u, 15u, 16u}) {
    EXPECT_EQ(ChunkLines().allow(std::string(digits - 1, '0') + "5\r\n").has_value(), digits <= 15) << digits;
  }
  for (const std::size_t bytes : {255u, 256u, 257u}) {
    EXPECT_EQ(ChunkLines().allow("5;" + std::string(bytes - 1, 'a') + "\r\n").has_value(), bytes <= 256) << bytes;
  }
  for (const std::size_t bytes : {272u, 273u, 274u}) {  // whose end has not come
    EXPECT_EQ(ChunkLines().allow("5;" + std::string(bytes - 2, 'a')).has_value(), bytes <= 273) << bytes;
  }
  ChunkLines lines;
  for (std::size_t chunk = 0; chunk < 17; ++chunk) {
    const std::string line = (chunk == 0 ? "1;" : "\r\n1;") + std::string(255, 'a') + "\r\n";
    ASSERT_EQ(lines.allow(line).has_value(), chunk < 16) << chunk;
    lines.taken(line.size() + 1);
  }
}

}  // namespace
}  // namespace quire::api::http::chunk_lines_test
