#include "core/speculate/depth/step_costs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/base/check.h"

namespace quire::speculate {
namespace {

double expected(const StepPrior& prior, double rows) {
  const double reading = prior.weight_bytes / prior.bytes_per_s;
  const double computing = rows * prior.fmas_per_row / prior.fmas_per_s;
  return std::max(reading, computing) + prior.fixed_seconds;
}

// Reads the next number of a line into `out`; false if there is none.
template <typename T>
bool take(std::string_view& line, T& out) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const std::from_chars_result read = std::from_chars(line.data(), line.data() + line.size(), out);
  if (read.ec != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
  return true;
}

bool parse(std::string_view line, CostCurve::Point& out) {
  if (!take(line, out.count) || !take(line, out.seconds) || !take(line, out.weight) || !line.empty()) return false;
  const bool in_range = out.count >= 1 && out.count <= CostCurve::kLongestCount;
  return in_range && std::isfinite(out.seconds) && out.seconds > 0 && out.weight > 0 && std::isfinite(out.weight);
}

}  // namespace

StepCosts::StepCosts(const StepPrior& prior) : curve_([&prior](double rows) { return expected(prior, rows); }) {
  CHECK(prior.weight_bytes > 0 && prior.bytes_per_s > 0 && prior.fmas_per_row > 0 && prior.fmas_per_s > 0);
}

std::string StepCosts::text() const {
  std::string out;
  for (const CostCurve::Point& point : curve_.points()) {
    char line[96];
    const int size = std::snprintf(line, sizeof line, "%u %.6g %.3g\n", point.count, point.seconds, point.weight);
    out.append(line, static_cast<std::size_t>(size));
  }
  return out;
}

Result<Done> StepCosts::read(std::string_view text) {
  std::vector<CostCurve::Point> points;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    CostCurve::Point point;
    if (end == std::string_view::npos || !parse(line, point)) {
      return invalid("", "expected rows, seconds and weight, found \"" + std::string(line.substr(0, 60)) + "\"");
    }
    points.push_back(point);
    text.remove_prefix(end + 1);
  }
  for (const CostCurve::Point& point : points) curve_.restore(point);
  return Done{};
}

}  // namespace quire::speculate
