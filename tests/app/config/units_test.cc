#include "app/config/units.h"

#include <gtest/gtest.h>

namespace quire::app::units_test {
namespace {

TEST(Units, CountsTakeVllmsSuffixes) {
  EXPECT_EQ(parse_count("0").value(), 0u);
  EXPECT_EQ(parse_count("8192").value(), 8192u);
  EXPECT_EQ(parse_count("1k").value(), 1000u);
  EXPECT_EQ(parse_count("1K").value(), 1024u);
  EXPECT_EQ(parse_count("25.6k").value(), 25600u);
  EXPECT_EQ(parse_count("2M").value(), 2u << 20);
}

TEST(Units, SizesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096u);
  EXPECT_EQ(parse_bytes("4096B").value(), 4096u);
  EXPECT_EQ(parse_bytes("4MiB").value(), 4u << 20);
  EXPECT_EQ(parse_bytes("4MB").value(), 4'000'000u);
  EXPECT_EQ(parse_bytes("1.5GiB").value(), 3u << 29);
  EXPECT_EQ(parse_bytes("2g").value(), 2'000'000'000u);
  EXPECT_EQ(parse_bytes("2TiB").value(), 2ull << 40);
}

TEST(Units, TimesNeedAUnitButForZero) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_duration("0").value(), 0ns);
  EXPECT_EQ(parse_duration("30s").value(), 30s);
  EXPECT_EQ(parse_duration("500ms").value(), 500ms);
  EXPECT_EQ(parse_duration("2m").value(), 2min);
  EXPECT_EQ(parse_duration("1.5h").value(), 90min);
  EXPECT_EQ(parse_duration("100d").value(), 2400h);
  EXPECT_FALSE(parse_duration("30"));
  EXPECT_FALSE(parse_duration("101d"));
}

TEST(Units, WhatIsNoNumberIsRefused) {
  for (const char* text : {"", " ", "-1", "+1", "1 ", " 1", "nan", "inf", "1e3", "0x10", ".5", "1.", "1..2", "1.2.3",
                           "k", "1kk", "1QiB"}) {
    EXPECT_FALSE(parse_count(text)) << text;
    EXPECT_FALSE(parse_bytes(text)) << text;
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Units, ThePartOfAByteIsRefused) {
  EXPECT_TRUE(parse_bytes("0.5KiB"));
  EXPECT_FALSE(parse_bytes("0.3KiB"));
  EXPECT_FALSE(parse_count("1.5"));
}

TEST(Units, NothingOverflows) {
  EXPECT_EQ(parse_count("18446744073709551614").value(), 18446744073709551614u);
  EXPECT_EQ(parse_count("18446744073709551615").value(), 18446744073709551615u);
  EXPECT_FALSE(parse_count("18446744073709551616"));
  EXPECT_EQ(parse_bytes("16777215TiB").value(), 16777215ull << 40);
  EXPECT_FALSE(parse_bytes("16777216TiB"));
  EXPECT_FALSE(parse_bytes("99999999999999999999999999999999999999GiB"));
  EXPECT_FALSE(parse_bytes("0.00000000000000000000000000000000000001GiB"));
  EXPECT_FALSE(parse_duration("99999999999999999d"));
}

TEST(Units, ReadAloud) {
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(3u << 29), "1.50 GiB");
  EXPECT_EQ(seconds_text(std::chrono::milliseconds(123)), "0.123 s");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1.0K");
  EXPECT_EQ(count_text(134'515'008), "135M");
  EXPECT_EQ(count_text(999'499'999), "999M");
  EXPECT_EQ(count_text(999'500'000), "1.0B");
  EXPECT_EQ(count_text(1'235'814'400), "1.2B");
  EXPECT_EQ(count_text(9'949'999'999), "9.9B");
  EXPECT_EQ(count_text(9'950'000'000), "10B");
  EXPECT_EQ(count_text(70'553'706'496), "71B");
}

}  // namespace
}  // namespace quire::app::units_test
