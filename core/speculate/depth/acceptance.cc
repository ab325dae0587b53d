#include "core/speculate/depth/acceptance.h"

#include <algorithm>
#include <bit>

namespace quire::speculate {
namespace {

// Prior ratio before any measurement; optimistic, since a superfluous draft token costs less than never trying.
constexpr double kPriorRatio = 0.7;
constexpr double kPriorTrials = 8;  // weight of that prior
constexpr double kOthersTrials = 4;
constexpr double kRankTries = 4;
constexpr double kLargestRatio = 0.98;

std::uint64_t first_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace

void Acceptance::note_offer(std::uint32_t asked, std::uint32_t offered) {
  used_ = std::max(used_, std::min(asked, kMaxRanks));
  for (std::uint32_t i = 0; i < used_; ++i) {
    Rank& rank = ranks_[i];
    rank.asks = static_cast<float>(rank.asks * keep_) + (i < asked ? 1.0f : 0.0f);
    rank.offers = static_cast<float>(rank.offers * keep_) + (i < asked && i < offered ? 1.0f : 0.0f);
  }
}

void Acceptance::note_verification(std::uint32_t kept, std::uint64_t taken, double keep) {
  if (kept == 0) return;
  used_ = std::max(used_, kept);
  for (std::uint32_t i = 0; i < used_; ++i) {
    Rank& rank = ranks_[i];
    rank.tries = static_cast<float>(rank.tries * keep) + (i < kept ? 1.0f : 0.0f);
    rank.hits = static_cast<float>(rank.hits * keep) + (i < kept && (taken >> i & 1) != 0 ? 1.0f : 0.0f);
  }
  trials_ = trials_ * keep + 1 + std::popcount(taken & first_bits(kept - 1));
  successes_ = successes_ * keep + std::popcount(taken & first_bits(kept));
}

void Acceptance::note_cut(std::uint32_t rank, double chance) {
  used_ = std::max(used_, rank + 1);
  ranks_[rank].tries = static_cast<float>(ranks_[rank].tries * keep_ + 1);
  ranks_[rank].hits = static_cast<float>(ranks_[rank].hits * keep_ + chance);
}

double Acceptance::ratio(const Chances* others) const {
  const double prior = others != nullptr ? others->ratio : kPriorRatio;
  const double worth = others != nullptr ? kOthersTrials : kPriorTrials;
  return (successes_ + worth * prior) / (trials_ + worth);
}

Chances Acceptance::chances(const Chances* others, std::uint32_t count) const {
  Chances out;
  out.ratio = ratio(others);
  double offered = 1;
  double taken = 1;
  for (std::uint32_t i = 0; i < std::min(count, kMaxRanks); ++i) {
    double stays = 1;  // prior of offered[i] / offered[i - 1]
    double falls = out.ratio;
    if (others != nullptr) {
      stays = i == 0 ? others->offered[0] : others->offered[i] / std::max(others->offered[i - 1], 1e-9);
      falls = i == 0 ? others->taken[0] : others->taken[i] / std::max(others->taken[i - 1], 1e-9);
      falls *= out.ratio / std::max(others->ratio, 1e-9);
    }
    const Rank& rank = ranks_[i];
    offered = (rank.offers + kRankTries * offered * std::min(stays, 1.0)) / (rank.asks + kRankTries);
    taken = (rank.hits + kRankTries * taken * std::min(falls, kLargestRatio)) / (rank.tries + kRankTries);
    out.offered[i] = offered;
    out.taken[i] = taken;
  }
  return out;
}

}  // namespace quire::speculate
