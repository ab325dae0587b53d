#include "core/grammar/rules/rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/text/unicode/utf8.h"
#include "tests/core/grammar/brute_force.h"

namespace quire::grammar::rules_test {
namespace {

bool matches(const Rules& rules, Expr expr, const std::string& text) {
  return testing::BruteForce(rules, text).matches(expr);
}

std::string utf8(char32_t c) {
  std::string out;
  text::append_utf8(out, c);
  return out;
}

TEST(Rules, ARangeOfCodePointsMatchesThoseAndNoOthers) {
  const std::pair<char32_t, char32_t> ranges[] = {
      {'a', 'z'},     {0, 0x10FFFF},    {0x7F, 0x80},       {0x7FF, 0x800},     {0xD700, 0xE100}, {0xFFFF, 0x10000},
      {0x3B1, 0x3C9}, {0x20AC, 0x20AC}, {0x1F600, 0x1F64F}, {0xE000, 0x10FFFF}, {0xD7FF, 0xE000}, {0x123, 0x45678}};
  const char32_t probes[] = {0,       'a',     'z',     '{',     0x7F,    0x80,    0x122,   0x123,
                             0x3B0,   0x3B1,   0x3C9,   0x3CA,   0x7FF,   0x800,   0x20AB,  0x20AC,
                             0x20AD,  0xD6FF,  0xD700,  0xD7FF,  0xE000,  0xE100,  0xE101,  0xFFFF,
                             0x10000, 0x1F5FF, 0x1F600, 0x1F64F, 0x1F650, 0x45678, 0x45679, 0x10FFFF};
  for (const auto& [first, last] : ranges) {
    Rules rules;
    const Expr expr = rules.code_points(first, last);
    for (const char32_t probe : probes) {
      EXPECT_EQ(matches(rules, expr, utf8(probe)), first <= probe && probe <= last)
          << std::hex << std::uint32_t{first} << ".." << std::uint32_t{last} << " " << std::uint32_t{probe};
    }
  }
}

TEST(Rules, NoRangeOfCodePointsMatchesBytesThatAreNotUtf8) {
  Rules rules;
  const Expr expr = rules.code_points(0, 0x10FFFF);
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
                                "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82"}) {
    EXPECT_FALSE(matches(rules, expr, bad));
  }
}

}  // namespace
}  // namespace quire::grammar::rules_test
