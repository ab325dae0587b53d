#include "app/model/read_bandwidth.h"

#include <gtest/gtest.h>

namespace quire::app {
namespace {

TEST(ReadBandwidth, IsAFigureForEveryRun) {
  const std::vector<double> figures = measure_read_bandwidth(2, 8 << 20, 3);
  ASSERT_EQ(figures.size(), 3u);
  for (const double figure : figures) EXPECT_GT(figure, 1e6);
}

}  // namespace
}  // namespace quire::app
