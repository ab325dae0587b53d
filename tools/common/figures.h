// Mean, median and percentile of values.
// Shape   at least one value. Values are taken by value where they are sorted.
// Thread  any; pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/base/check.h"

namespace quire::tools {

inline double mean(const std::vector<double>& values) {
  CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

inline double median(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The smallest value such that at least `percent` % of the values are not greater (nearest rank).
inline double percentile(std::vector<double> values, std::size_t percent) {
  CHECK(!values.empty());
  CHECK_GE(percent, 1u);
  CHECK_LE(percent, 100u);
  std::sort(values.begin(), values.end());
  return values[(values.size() * percent + 99) / 100 - 1];
}

}  // namespace quire::tools
