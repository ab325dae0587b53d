#include "app/model/speed_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::app {
namespace {

using ::testing::HasSubstr;

TEST(SpeedEstimate, IsBandwidthOverTheBytesOfAToken) {
  const SpeedEstimate speed{.threads = 2, .bytes_per_s = 30e9, .step_bytes = 1'000'000'000};
  EXPECT_DOUBLE_EQ(speed.tokens_per_s(0), 30.0);
  EXPECT_DOUBLE_EQ(speed.tokens_per_s(500'000'000), 20.0);
  EXPECT_EQ(speed_text(speed, 4096, 500'000'000),
            "about 30 tokens/s for one stream on the CPU, 20 at 4096 tokens of context");
  EXPECT_THAT(speed_source_text(speed),
              HasSubstr("of weights read per token at 30.0 GB/s, measured now with 2 threads"));
}

TEST(SpeedEstimate, HasTwoDigits) {
  const auto text = [](double bytes_per_s) {
    return speed_text({.threads = 1, .bytes_per_s = bytes_per_s, .step_bytes = 1}, 8, 0);
  };
  EXPECT_THAT(text(1.26), HasSubstr("about 1.3 tokens/s"));
  EXPECT_THAT(text(9.94), HasSubstr("about 9.9 tokens/s"));
  EXPECT_THAT(text(9.96), HasSubstr("about 10 tokens/s"));
  EXPECT_THAT(text(99.4), HasSubstr("about 99 tokens/s"));
  EXPECT_THAT(text(123.0), HasSubstr("about 120 tokens/s"));
}

TEST(SpeedEstimate, MeasuresWithoutWeightsAndWithLittleMemory) {
  const SpeedEstimate speed = estimate_speed(0, 0);
  EXPECT_EQ(speed.step_bytes, 1u);
  EXPECT_GT(speed.bytes_per_s, 0.0);
  EXPECT_GE(speed.threads, 1u);
}

}  // namespace
}  // namespace quire::app
