// Seconds by a count (rows of a step, nodes of a draft), from a prior that knows the shape and from noisy measurements.
//   A cell keeps the latest times of its counts; its time is a low quantile, and a first one that surprises is not believed until
//   others agree. Through the cells goes base + slope · x + scale · prior(x), none negative; what a cell says beyond that counts
//   in its neighbourhood, as far as it is recent. The whole never falls.
// Shape   counts 1..16 have a cell each, then four an octave up to 4096.
// Owner   StepCosts, DraftCosts.
// Thread  engine.
// Source  ours. The isotonic fit is pool-adjacent-violators (Ayer et al. 1955).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace quire::speculate {

class CostCurve {
 public:
  static constexpr std::uint32_t kLongestCount = 4096;
  static constexpr std::size_t kCells = 48;
  static constexpr std::size_t kKept = 32;  // times of a cell

  // `prior(x)` > 0 for x in 1..4096.
  explicit CostCurve(const std::function<double(double)>& prior);

  void add(std::uint32_t count, double seconds);  // count >= 1; others and times that are not positive are passed over
  double seconds(double count) const;
  // The same, but as it may turn out to be where nobody has looked: to be tried, a size has to look good.
  double hopeful_seconds(double count) const;
  // How many measurements this count has; old ones count less.
  double weight_at(double count) const;
  bool measured() const;

  // What was learned, cell by cell, and back.
  struct Point {
    std::uint32_t count = 0;
    double seconds = 0;
    double weight = 0;
  };
  std::vector<Point> points() const;
  void restore(const Point& point);

 private:
  struct Cell {
    std::array<double, kKept> times{};
    std::uint32_t num_times = 0;
    std::uint32_t next = 0;
    double weight = 0;
    double seconds = 0;  // of `times`
  };

  double value(double x) const;  // of the fit
  void fit_base() const;
  void fit() const;

  std::array<Cell, kCells> cells_;
  std::array<double, kCells> prior_;
  mutable std::array<double, kCells> curve_{};
  mutable std::array<double, kCells> least_{};  // what known cells say from below
  mutable bool fitted_ = false;
};

}  // namespace quire::speculate
