#include "core/observe/latency_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace quire::observe {
namespace {

constexpr double kLongestTight = 10;

TEST(LatencyBounds, AscendByAtMostAThirdUpToTenSeconds) {
  ASSERT_LE(kLatencySeconds[0], .001);
  for (std::size_t i = 1; i < std::size(kLatencySeconds); ++i) {
    const double below = kLatencySeconds[i - 1];
    EXPECT_GT(kLatencySeconds[i], below);
    if (kLatencySeconds[i] <= kLongestTight) {
      EXPECT_LE(kLatencySeconds[i] / below, 4.0 / 3 * (1 + 1e-12)) << below;
    }
  }
}

// Panels of vLLM's dashboards select buckets by the exact bound.
TEST(LatencyBounds, HaveEveryBoundOfVllmAndOfItsHttpServer) {
  const std::vector<std::vector<double>> theirs = {
      {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560},
      {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80},
      {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680},
      {.1, .5, 1}};
  for (const std::vector<double>& bounds : theirs) {
    for (const double bound : bounds) EXPECT_TRUE(std::ranges::binary_search(kLatencySeconds, bound)) << bound;
  }
}

}  // namespace
}  // namespace quire::observe
