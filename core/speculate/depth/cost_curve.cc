#include "core/speculate/depth/cost_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "core/base/check.h"

namespace quire::speculate {
namespace {

constexpr double kKeep = 0.999;      // factor on every cell's weight at each measurement
constexpr double kKnown = 3;         // weight from which a cell counts as known
constexpr double kHope = 0.9;        // factor on the expected time of an unknown cell
constexpr double kForgotten = 0.05;  // a cell below this weight is emptied
constexpr double kQuantile = 0.35;   // low, since disturbances only lengthen times
constexpr double kOctaves = 0.3;     // width of a cell's influence on its neighbours
constexpr double kNeighbour = 0.1;   // weight of that influence
// Weight of the coefficients' prior: it decides alone before a measurement, and hardly counts after one.
constexpr double kPriorWeight = 0.05;
constexpr std::size_t kReach = 8;  // cells; exp(-(d / kOctaves)^2 / 2) is negligible beyond

// 1..16, then four an octave: 20, 24, 28, 32, 40, ..
double count_of(std::size_t cell) {
  if (cell < 16) return static_cast<double>(cell + 1);
  const std::size_t octave = (cell - 16) / 4;
  const std::size_t quarter = (cell - 16) % 4 + 1;
  return static_cast<double>((std::size_t{4} << octave) * (4 + quarter));
}

// The last cell whose count is at most x, x >= 1.
std::size_t cell_below(double x) {
  const auto whole = static_cast<std::size_t>(x);
  if (whole <= 16) return whole - 1;
  const auto octave = static_cast<std::size_t>(std::bit_width(whole)) - 5;
  const std::size_t quarter = (whole >> (octave + 2)) - 4;
  return std::min(15 + octave * 4 + quarter, CostCurve::kCells - 1);
}

double clamped(double x) { return std::clamp(x, 1.0, static_cast<double>(CostCurve::kLongestCount)); }

std::size_t cell_of(double x) {
  const std::size_t below = cell_below(x);
  if (below + 1 == CostCurve::kCells) return below;
  return x - count_of(below) < count_of(below + 1) - x ? below : below + 1;
}

double low_quantile(std::span<const double> times) {
  std::array<double, CostCurve::kKept> sorted;
  std::copy(times.begin(), times.end(), sorted.begin());
  const auto at = static_cast<std::ptrdiff_t>(kQuantile * static_cast<double>(times.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.begin() + static_cast<std::ptrdiff_t>(times.size()));
  return sorted[static_cast<std::size_t>(at)];
}

// Nearest non-decreasing values by weighted least squares (pool-adjacent-violators).
void make_monotone(std::span<double> values, std::span<const double> weights) {
  struct Run {
    double value;
    double weight;
    std::size_t size;
  };
  std::array<Run, CostCurve::kCells> runs;
  std::size_t n = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    runs[n++] = {values[i], weights[i], 1};
    while (n > 1 && runs[n - 2].value > runs[n - 1].value) {
      Run& into = runs[n - 2];
      const Run& from = runs[n - 1];
      const double weight = into.weight + from.weight;
      into = {(into.value * into.weight + from.value * from.weight) / weight, weight, into.size + from.size};
      --n;
    }
  }
  std::size_t i = 0;
  for (std::size_t run = 0; run < n; ++run) {
    for (std::size_t k = 0; k < runs[run].size; ++k) values[i++] = runs[run].value;
  }
}

// Minimises the sum of weight (row . x - target)^2 over x >= 0 by coordinate descent.
struct LeastSquares {
  std::array<std::array<double, 3>, 3> normal{};
  std::array<double, 3> right{};

  void add(const std::array<double, 3>& row, double target, double weight) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) normal[i][j] += weight * row[i] * row[j];
      right[i] += weight * row[i] * target;
    }
  }
  std::array<double, 3> solve() const {
    std::array<double, 3> x = {0, 0, 1};
    for (int turn = 0; turn < 60; ++turn) {
      for (std::size_t i = 0; i < 3; ++i) {
        double rest = right[i];
        for (std::size_t j = 0; j < 3; ++j) rest -= j == i ? 0 : normal[i][j] * x[j];
        x[i] = std::max(0.0, rest / normal[i][i]);
      }
    }
    return x;
  }
};

}  // namespace

CostCurve::CostCurve(const std::function<double(double)>& prior) {
  for (std::size_t i = 0; i < kCells; ++i) {
    prior_[i] = prior(count_of(i));
    CHECK(prior_[i] > 0);
  }
}

void CostCurve::add(std::uint32_t count, double seconds) {
  if (count == 0 || !(seconds > 0) || !std::isfinite(seconds)) return;
  const double x = clamped(count);
  const std::size_t at = cell_of(x);
  const double expected = value(count_of(at));
  const double scaled = seconds * expected / value(x);
  const bool surprises = measured();  // false for the very first measurement: only the prior precedes it
  for (Cell& cell : cells_) {
    cell.weight *= kKeep;
    if (cell.weight < kForgotten) cell = {};
  }
  Cell& cell = cells_[at];
  const auto keep = [&cell](double time) {
    cell.times[cell.next] = time;
    cell.next = (cell.next + 1) % kKept;
    cell.num_times = std::min<std::uint32_t>(cell.num_times + 1, kKept);
  };
  if (cell.num_times == 0 && surprises) keep(expected);
  keep(scaled);
  cell.weight = std::min(cell.weight + 1, static_cast<double>(kKept));
  cell.seconds = low_quantile({cell.times.data(), cell.num_times});
  fitted_ = false;
}

double CostCurve::seconds(double count) const { return value(clamped(count)); }

double CostCurve::hopeful_seconds(double count) const {
  const double x = clamped(count);
  const double expected = value(x);
  if (cells_[cell_of(x)].weight >= kKnown) return expected;
  return std::max(kHope * expected, least_[cell_below(x)]);
}

double CostCurve::weight_at(double count) const { return cells_[cell_of(clamped(count))].weight; }

bool CostCurve::measured() const {
  return std::any_of(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.num_times > 0; });
}

std::vector<CostCurve::Point> CostCurve::points() const {
  std::vector<Point> out;
  for (std::size_t i = 0; i < kCells; ++i) {
    if (cells_[i].num_times > 0) {
      out.push_back({static_cast<std::uint32_t>(count_of(i)), cells_[i].seconds, cells_[i].weight});
    }
  }
  return out;
}

void CostCurve::restore(const Point& point) {
  Cell& cell = cells_[cell_of(clamped(point.count))];
  cell = {};
  cell.times[0] = cell.seconds = point.seconds;
  cell.num_times = cell.next = 1;
  cell.weight = std::clamp(point.weight, 0.0, static_cast<double>(kKept));
  fitted_ = false;
}

double CostCurve::value(double x) const {
  if (!fitted_) fit();
  const std::size_t below = cell_below(x);
  if (below + 1 >= kCells) return curve_.back();
  const double from = count_of(below);
  const double part = (x - from) / (count_of(below + 1) - from);
  return curve_[below] + part * (curve_[below + 1] - curve_[below]);
}

// Fits base + slope x + scale prior(x) to relative errors, in units of the heaviest cell.
void CostCurve::fit_base() const {
  const auto heaviest = static_cast<std::size_t>(
      std::max_element(cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a.weight < b.weight; }) -
      cells_.begin());
  const double unit_seconds = cells_[heaviest].seconds;
  LeastSquares squares;
  squares.add({1, 0, 0}, 0, kPriorWeight);
  squares.add({0, 1, 0}, 0, kPriorWeight);
  squares.add({0, 0, 1}, 1, kPriorWeight);
  for (std::size_t i = 0; i < kCells; ++i) {
    const Cell& cell = cells_[i];
    if (cell.weight == 0) continue;
    const double over = unit_seconds / cell.seconds;
    squares.add({over, over * count_of(i) / count_of(heaviest), over * prior_[i] / prior_[heaviest]}, 1, cell.weight);
  }
  const auto [base, slope, scale] = squares.solve();
  for (std::size_t i = 0; i < kCells; ++i) {
    curve_[i] = unit_seconds * (base + slope * count_of(i) / count_of(heaviest) + scale * prior_[i] / prior_[heaviest]);
  }
}

void CostCurve::fit() const {
  fitted_ = true;
  curve_ = prior_;
  if (!measured()) return;
  fit_base();
  std::array<double, kCells> surprise{};
  std::array<double, kCells> weights{};
  for (std::size_t i = 0; i < kCells; ++i) {
    if (cells_[i].weight > 0) surprise[i] = std::log(cells_[i].seconds / curve_[i]);
    weights[i] = cells_[i].weight + 0.1;
  }
  for (std::size_t i = 0; i < kCells; ++i) {
    double sum = 0;
    double weight = 1;
    for (std::size_t j = i - std::min(i, kReach); j < std::min(i + kReach + 1, kCells); ++j) {
      if (cells_[j].weight == 0) continue;
      const double octaves = std::log2(count_of(i) / count_of(j)) / kOctaves;
      const double near = cells_[j].weight * (i == j ? 1.0 : kNeighbour * std::exp(-0.5 * octaves * octaves));
      sum += near * surprise[j];
      weight += near;
    }
    curve_[i] *= std::exp(sum / weight);
  }
  make_monotone(curve_, weights);
  double least = 0;
  for (std::size_t i = 0; i < kCells; ++i) {
    if (cells_[i].weight >= kKnown) least = curve_[i];
    least_[i] = least;
  }
}

}  // namespace quire::speculate
