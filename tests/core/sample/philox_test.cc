#include "core/sample/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace quire::sample::philox_test {
namespace {

struct KnownAnswer {
  PhiloxCounter counter;
  PhiloxKey key;
  PhiloxCounter words;
};

// Random123, tests/kat_vectors, the lines "philox4x32 10".
constexpr KnownAnswer kKnownAnswers[] = {
    {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0xffffffff, 0xffffffff}},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xa4093822, 0x299f31d0}},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

TEST(Philox, GivesThePublishedWords) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const PhiloxCounter words = philox4x32(known.counter, known.key);
    EXPECT_TRUE(std::equal(std::begin(words.words), std::end(words.words), std::begin(known.words.words)));
  }
}

TEST(Philox, IsAConstantExpression) { static_assert(philox4x32({{0, 0, 0, 0}}, {{0, 0}}).words[0] == 0x6627e8d5); }

}  // namespace
}  // namespace quire::sample::philox_test
