// Seconds as a function of a count (rows of a step, nodes of a draft), fitted to noisy measurements on a prior's shape.
//   Each cell keeps the latest times of its counts; its value is a low quantile of them. The first time of an empty
//   cell is stored with the time expected there, so that one outlier has little effect. The fit is base + slope · x +
//   scale · prior(x), coefficients >= 0, times a correction from each cell and its neighbours by their weight; it never
//   falls.
// Shape   counts 1..16 have a cell each, then four cells an octave up to 4096.
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

  // Adds a measurement; ignores a count of 0 and a time that is not positive and finite.
  void add(std::uint32_t count, double seconds);
  double seconds(double count) const;
  // seconds(), but optimistic at counts with few measurements: a size must look good to be tried.
  double hopeful_seconds(double count) const;
  // Number of measurements at this count, old ones counting less.
  double weight_at(double count) const;
  bool measured() const;

  // One cell as it is stored and restored.
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
    double seconds = 0;  // low quantile of `times`
  };

  double value(double x) const;  // of the fit
  void fit_base() const;
  void fit() const;

  std::array<Cell, kCells> cells_;
  std::array<double, kCells> prior_;
  mutable std::array<double, kCells> curve_{};
  mutable std::array<double, kCells> least_{};  // lower bound from the known cells at or below
  mutable bool fitted_ = false;
};

}  // namespace quire::speculate
