#include "core/grammar/schema/number_range.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "core/grammar/language/language.h"
#include "core/grammar/schema/json_text.h"
#include "tests/support/rules_match.h"

namespace quire::grammar {
namespace {

Decimal decimal(const std::string& text) { return *decimal_of(*json::parse(text, 1)); }

std::optional<Bound> bound(const std::string& text, bool open) {
  if (text.empty()) return std::nullopt;
  return Bound{decimal(text), open};
}

// Every number with up to three digits before and two behind the point, and some that are none.
std::vector<std::string> numbers() {
  std::vector<std::string> out;
  for (int whole = 0; whole <= 130; ++whole) {
    for (const char* part : {"", ".0", ".1", ".5", ".9", ".00", ".01", ".49", ".50", ".51", ".99", ".049"}) {
      for (const char* sign : {"", "-"}) out.push_back(sign + std::to_string(whole) + part);
    }
  }
  return out;
}

TEST(NumberRange, HoldsExactlyWhatLiesBetweenTheBounds) {
  const auto texts = numbers();
  const std::string bounds[] = {"",    "0",  "1",   "-1",  "9",    "10",    "99",    "100",
                                "101", "-7", "-99", "0.5", "-0.5", "12.49", "99.99", "-100.01"};
  for (const std::string& low : bounds) {
    for (const std::string& high : bounds) {
      for (int open = 0; open < 4; ++open) {
        const NumberRange range{bound(low, (open & 1) != 0), bound(high, (open & 2) != 0)};
        for (const bool integer : {false, true}) {
          Rules rules;
          const auto expr = number_range(rules, {range.low, range.high, integer});
          ASSERT_TRUE(expr);
          StateBudget budget(100'000);
          const Language language = Language::of(rules, *expr, budget);
          for (const std::string& text : texts) {
            const double value = std::strtod(text.c_str(), nullptr);
            const double least = low.empty() ? -1e9 : std::strtod(low.c_str(), nullptr);
            const double most = high.empty() ? 1e9 : std::strtod(high.c_str(), nullptr);
            bool inside = value >= least && value <= most;
            if ((open & 1) != 0 && value == least) inside = false;
            if ((open & 2) != 0 && value == most) inside = false;
            if (integer && text.find('.') != std::string::npos) inside = false;
            if (value == 0 && text[0] == '-') inside = false;
            ASSERT_EQ(language.contains(text), inside) << text << " in " << low << ".." << high << " " << open;
          }
        }
      }
    }
  }
}

TEST(NumberRange, HasNoNumberThatIsWrittenTwice) {
  Rules rules;
  const Expr expr = *number_range(rules, {bound("0", false), bound("500", false)});
  for (const std::string text :
       {"", "00", "01", "1.", ".5", "-", "-0", "-0.0", "+1", "1e1", "1 ", "0x1", "500.1", "1.2.3"}) {
    EXPECT_FALSE(RulesMatch(rules, text).whole(expr)) << text;
  }
}

TEST(NumberRange, StopsAtEighteenDigits) {
  Rules rules;
  const Expr expr = *number_range(rules, {bound("1", false), std::nullopt, true});
  for (const std::size_t digits : {kMaxDigits - 1, kMaxDigits, kMaxDigits + 1}) {
    EXPECT_EQ(RulesMatch(rules, std::string(digits, '9')).whole(expr), digits <= kMaxDigits) << digits;
  }
}

TEST(NumberRange, NeverAsksForMoreDigitsThanADoubleDistinguishes) {
  Rules rules;
  const Expr expr = *number_range(rules, {bound("10", true), bound("11", true)});
  EXPECT_TRUE(RulesMatch(rules, "10.0000000000001").whole(expr));                               // 15
  EXPECT_FALSE(RulesMatch(rules, "10.00000000000001").whole(expr));                             // 16
  EXPECT_TRUE(number_range(rules, {bound("0.123456789", false), bound("100000.5", false)}));    // 9 behind the point
  EXPECT_FALSE(number_range(rules, {bound("0.1234567891", false), bound("100000.5", false)}));  // and 10
}

TEST(Decimal, ReadsWhatWasWritten) {
  for (const auto& [text, whole, part] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"0", "0", ""},
           {"-0.0", "0", ""},
           {"0.1", "0", "1"},
           {"1.10", "1", "1"},
           {"-12.5e1", "125", ""},
           {"1e3", "1000", ""},
           {"3.14159", "3", "14159"},
           {"1e-7", "0", "0000001"},
           {"18446744073709551615", "18446744073709551615", ""},
           {"1e20", "100000000000000000000", ""},
           {"0.007", "0", "007"},
           {"123456.789", "123456", "789"},
           {"0.3", "0", "3"},
           {"1.1", "1", "1"},
           {"2.675", "2", "675"},
           {"1e-5", "0", "00001"},
           {"5e-3", "0", "005"}}) {
    const Decimal got = decimal(text);
    EXPECT_EQ(got.whole, whole) << text;
    EXPECT_EQ(got.part, part) << text;
  }
  EXPECT_FALSE(decimal_of(*json::parse("0.1234567890123456789", 1)));
}

TEST(Decimal, EveryShortDecimalIsReadExactly) {
  for (int whole = 0; whole < 50; ++whole) {
    for (int part = 0; part < 1000; ++part) {
      std::string text = std::to_string(1000 + part).substr(1);
      const Decimal got = decimal(std::to_string(whole) + "." + text);
      text.erase(text.find_last_not_of('0') + 1);
      ASSERT_EQ(got.part, text) << whole << "." << part;
    }
  }
}

}  // namespace
}  // namespace quire::grammar
