// Calibration of a drafter's own probabilities: per bin of probability, the accepted nodes over the expected ones.
// Owner   DepthControl: one for the drafter.
// Thread  engine.
// Source  ours.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace quire::speculate {

class Calibration {
 public:
  // Calibrated probability of a node whose drafter says `likely`, in (0, 1].
  double chance(double likely) const {
    const Bin& bin = bins_[bin_of(likely)];
    return std::min(1.0, likely * (bin.taken + kWorth) / (bin.promised + kWorth));
  }
  void note(double likely, bool taken) {
    Bin& bin = bins_[bin_of(likely)];
    bin.promised = bin.promised * kKeep + std::min(likely, 1.0);
    bin.taken = bin.taken * kKeep + (taken ? 1 : 0);
  }

 private:
  static constexpr std::size_t kBins = 16;  // half an octave each
  static constexpr double kKeep = 0.998;
  static constexpr double kWorth = 2;  // weight of the drafter's own probability, in accepted nodes

  static std::size_t bin_of(double likely) {
    return static_cast<std::size_t>(std::clamp(-2 * std::log2(likely), 0.0, kBins - 1.0));
  }
  struct Bin {
    double promised = 0;
    double taken = 0;
  };
  std::array<Bin, kBins> bins_{};
};

}  // namespace quire::speculate
