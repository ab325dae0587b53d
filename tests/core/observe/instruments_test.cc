#include "core/observe/instruments.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace quire::observe {
namespace {

constexpr double kBounds[] = {1, 10, 100};

TEST(Histogram, CountsAValueOnABoundBelowIt) {
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 10.0, 99.0, 100.0, 100.5, 1e9}) histogram.observe(value);
  EXPECT_EQ(histogram.count(0), 2u);  // 0.5, 1
  EXPECT_EQ(histogram.count(1), 2u);  // 1.5, 10
  EXPECT_EQ(histogram.count(2), 2u);  // 99, 100
  EXPECT_EQ(histogram.count(3), 2u);  // above all bounds
  EXPECT_DOUBLE_EQ(histogram.sum(), 0.5 + 1 + 1.5 + 10 + 99 + 100 + 100.5 + 1e9);
}

TEST(Instruments, LoseNothingWhenManyThreadsWrite) {
  constexpr int kThreads = 4;
  constexpr int kWrites = 20000;
  Counter counter;
  Histogram histogram(kBounds);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kWrites; ++i) {
          counter.add();
          histogram.observe(t < 2 ? 1 : 1000);
        }
      });
    }
  }
  EXPECT_EQ(counter.value(), 80000u);
  EXPECT_EQ(histogram.count(0), 40000u);
  EXPECT_EQ(histogram.count(3), 40000u);
  EXPECT_DOUBLE_EQ(histogram.sum(), 40000.0 * 1 + 40000.0 * 1000);
}

TEST(Gauge, SaysWhatWasSetLast) {
  Gauge gauge;
  EXPECT_EQ(gauge.value(), 0.0);
  gauge.set(2.5);
  gauge.set(-1);
  EXPECT_EQ(gauge.value(), -1.0);
}

}  // namespace
}  // namespace quire::observe
