#include "app/process/progress_line.h"

#include <gtest/gtest.h>

#include <chrono>

namespace quire::app::progress_line_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(ProgressLine, HasFractionBarBytesRateAndRest) {
  EXPECT_EQ(progress_line("packing x", {256 * kMiB, 1024 * kMiB, 128 * kMiB}, std::chrono::seconds(2), 200),
            " 25 % [####..............]  256.0 MiB of 1.00 GiB  64.0 MiB/s  0:12 left  packing x");
  EXPECT_EQ(progress_line("x", {1024 * kMiB, 1024 * kMiB, kMiB}, std::chrono::seconds(1), 200),
            "100 % [##################]  1.00 GiB of 1.00 GiB  1.0 MiB/s  x");
  EXPECT_NE(progress_line("x", {0, 8192 * kMiB, kMiB}, std::chrono::seconds(1), 200).find("2:16:32 left"),
            std::string::npos);
}

TEST(ProgressLine, SaysNothingOfTheRestBeforeItsRateIsKnown) {
  EXPECT_EQ(progress_line("x", {0, kMiB, 0}, std::chrono::seconds(0), 200),
            "  0 % [..................]  0 B of 1.0 MiB  0 B/s  x");
  EXPECT_EQ(WorkDone{}.fraction(), 0.0);
  EXPECT_EQ((WorkDone{5, 3, 5}.fraction()), 1.0);
}

TEST(ProgressLine, LeavesOutWhatANarrowTerminalHasNoRoomFor) {
  const std::string whole = progress_line("müller", {1, 2, 0}, std::chrono::seconds(0), 200);
  for (std::size_t width = 1; width < whole.size() + 3; ++width) {
    const std::string line = progress_line("müller", {1, 2, 0}, std::chrono::seconds(0), width);
    EXPECT_LT(line.size(), width);
    EXPECT_EQ(whole.find(line), 0u);
    EXPECT_TRUE(line.empty() || line.back() != '\xc3') << width;
  }
}

}  // namespace
}  // namespace quire::app::progress_line_test
