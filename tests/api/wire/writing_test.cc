#include "api/wire/writing.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace quire::api::test {
namespace {

Writing letters(std::string& out, char letter, std::size_t num) {
  for (std::size_t i = 0; i < num; ++i) {
    out += letter;
    co_await part_end(out);
  }
}

Writing words(std::string& out, std::size_t each) {
  out += '(';
  Writing first = letters(out, 'a', each);
  co_await first;
  Writing second = letters(out, 'b', each);
  co_await second;
  out += ')';
}

std::vector<std::string> parts_of(std::string& out, Writing writing) {
  std::vector<std::string> parts;
  while (!writing.done()) {
    writing.resume();
    parts.push_back(std::exchange(out, {}));
  }
  return parts;
}

TEST(WritingTest, NothingIsDoneAtOnce) {
  Writing nothing;
  EXPECT_TRUE(nothing.done());
  nothing.resume();
  nothing.finish();
}

TEST(WritingTest, AShortTextIsOnePart) {
  std::string out;
  EXPECT_EQ(parts_of(out, words(out, 3)), std::vector<std::string>{"(aaabbb)"});
}

TEST(WritingTest, PartsOfALongTextAreThatTextAndNoneIsLonger) {
  for (const std::size_t each : {kPartBytes / 2, kPartBytes - 1, kPartBytes, kPartBytes + 1, 3 * kPartBytes}) {
    std::string out, whole;
    const std::vector<std::string> parts = parts_of(out, words(out, each));
    for (const std::string& part : parts) {
      EXPECT_LE(part.size(), kPartBytes + 1);
      whole += part;
    }
    EXPECT_EQ(whole, "(" + std::string(each, 'a') + std::string(each, 'b') + ")");
    EXPECT_GE(parts.size(), (2 * each + 2) / kPartBytes);
  }
}

TEST(WritingTest, FinishWritesInOnePart) {
  std::string out;
  words(out, 2 * kPartBytes).finish();
  EXPECT_EQ(out.size(), 4 * kPartBytes + 2);
}

Writing fails(std::string& out) {
  out += 'a';
  co_await part_end(out);
  throw std::runtime_error("no");
}

Writing awaits_one_that_fails(std::string& out) {
  Writing inner = fails(out);
  co_await inner;
  out += "never";
}

TEST(WritingTest, WhatIsThrownInsideComesOut) {
  std::string out;
  Writing writing = awaits_one_that_fails(out);
  EXPECT_THROW(writing.resume(), std::runtime_error);
  EXPECT_EQ(out, "a");
}

TEST(WritingTest, OneThatIsLeftHalfWayLeavesNothing) {
  std::string out;
  Writing writing = words(out, 3 * kPartBytes);
  writing.resume();
  Writing moved = std::move(writing);
  EXPECT_TRUE(writing.done());
  EXPECT_FALSE(moved.done());
}

}  // namespace
}  // namespace quire::api::test
