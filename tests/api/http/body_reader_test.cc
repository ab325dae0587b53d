#include "api/http/body_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace quire::api::http::body_reader_test {
namespace {

constexpr FramingLimits kLimits{.head_bytes = 1024, .head_fields = 16, .body_bytes = 100};
const std::string kHead = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX-One: first\r\n\r\n";
const std::string kChunks = "3\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-One: trailer\r\n\r\n";

TEST(BodyReader, TakesChunksInAnyPieces) {
  for (std::size_t step = 1; step <= kChunks.size() + 1; ++step) {
    BodyReader reader(kLimits);
    ASSERT_EQ(reader.put(kHead).bytes, kHead.size());
    EXPECT_EQ(reader.field("x-one"), "first");
    const std::string stream = kChunks + "GET / HTTP/1.1\r\n";
    std::size_t taken = 0;
    for (std::size_t have = 0; !reader.done();) {
      have = std::min(stream.size(), have + step);
      const BodyReader::Taken one = reader.put(std::string_view(stream).substr(taken, have - taken));
      ASSERT_FALSE(one.refusal) << one.refusal->message;
      taken += one.bytes;
    }
    EXPECT_EQ(taken, kChunks.size()) << "the next request is left alone";
    EXPECT_EQ(reader.take_body(), "abc0123456789");
  }
}

TEST(BodyReader, KnowsWhichFieldsCameMoreThanOnce) {
  BodyReader reader(kLimits);
  (void)reader.put("GET / HTTP/1.1\r\nHost: a\r\nX-Two: a\r\nX-One: b\r\nx-two: a\r\n\r\n");
  EXPECT_TRUE(reader.repeats("X-TWO"));
  EXPECT_FALSE(reader.repeats("x-one"));
  EXPECT_FALSE(reader.repeats("x-none"));
}

TEST(BodyReader, PutsFieldsOfOneNameTogetherInTheirOrder) {
  BodyReader reader(kLimits);
  (void)reader.put("GET / HTTP/1.1\r\nHost: a\r\nX-Two: a=1,b=2\r\nX-One: b\r\nx-two: c=3\r\n\r\n");
  EXPECT_EQ(reader.all_of("X-TWO"), "a=1,b=2,c=3");
  EXPECT_EQ(reader.all_of("x-one"), "b");
  EXPECT_EQ(reader.all_of("x-none"), "");
}

TEST(BodyReader, HoldsChunksToTheBodyLimitBeforeTheyCome) {
  BodyReader reader(kLimits);
  (void)reader.put(kHead);
  const BodyReader::Taken taken = reader.put("65\r\n");  // 101, and not a byte of it yet
  EXPECT_FALSE(taken.refusal);
  const BodyReader::Taken more = reader.put("65\r\nx");
  ASSERT_TRUE(more.refusal);
  EXPECT_EQ(more.refusal->fault, Fault::kBodyTooLarge);
}

TEST(BodyReader, NeedsNoBodyWhereThereIsNone) {
  BodyReader reader(kLimits);
  EXPECT_EQ(reader.put("GET / HTTP/1.1\r\nHost: a\r\n\r\n").refusal.has_value(), false);
  EXPECT_TRUE(reader.done());
}

}  // namespace
}  // namespace quire::api::http::body_reader_test
