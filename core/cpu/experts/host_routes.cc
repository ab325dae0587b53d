#include "core/cpu/experts/host_routes.h"

#include <algorithm>

namespace quire::cpu {

HostRoutes::HostRoutes(std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k)
    : max_rows_(max_rows),
      num_experts_(num_experts),
      top_k_(top_k),
      experts_(std::size_t{max_rows} * top_k),
      weights_(experts_.size()),
      places_(experts_.size()),
      row_at_(experts_.size()),
      expert_at_(experts_.size()),
      first_(std::size_t{num_experts} + 1) {}

// A counting sort, which keeps the order of rows.
void HostRoutes::index(std::uint32_t rows) {
  const auto chosen = std::span(experts_).first(std::size_t{rows} * top_k_);
  std::ranges::fill(first_, 0u);
  for (const std::uint32_t expert : chosen) ++first_[expert];
  std::uint32_t end = 0;
  for (std::uint32_t& count : first_) count = end += count;
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const std::uint32_t place = --first_[chosen[i]];
    places_[i] = place;
    row_at_[place] = static_cast<std::uint32_t>(i) / top_k_;
    expert_at_[place] = chosen[i];
  }
}

}  // namespace quire::cpu
