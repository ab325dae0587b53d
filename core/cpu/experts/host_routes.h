// The experts of each row of a step, and the rows of each expert.
// Shape   T rows, X experts, k for each row. A place is an index of the rows by expert [T·k].
// Owner   the caller of Factory::make_routes().
// Thread  set(): any worker, different rows. The others: engine, or any worker once index() is done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/experts.h"
#include "core/cpu/team/share_out.h"

namespace quire::cpu {

class HostRoutes final : public backend::Routes {
 public:
  HostRoutes(std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k);

  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t num_experts() const override { return num_experts_; }
  std::uint32_t top_k() const override { return top_k_; }

  // [k] of a row, ascending by index, to be written before index().
  std::span<std::uint32_t> experts(std::uint32_t row) { return of_row(experts_, row); }
  std::span<const std::uint32_t> experts(std::uint32_t row) const { return of_row(experts_, row); }
  std::span<float> weights(std::uint32_t row) { return of_row(weights_, row); }
  std::span<const float> weights(std::uint32_t row) const { return of_row(weights_, row); }
  // Finds the places of the first `rows` rows.
  void index(std::uint32_t rows);

  std::span<const std::uint32_t> places(std::uint32_t row) const { return of_row(places_, row); }  // [k]
  std::uint32_t row_at(std::uint32_t place) const { return row_at_[place]; }
  std::uint32_t expert_at(std::uint32_t place) const { return expert_at_[place]; }
  Range places_of(std::uint32_t expert) const { return {first_[expert], first_[expert + 1]}; }

 private:
  template <typename Values>
  auto of_row(Values& values, std::uint32_t row) const -> decltype(std::span(values.data(), values.size())) {
    return std::span(values).subspan(std::size_t{row} * top_k_, top_k_);
  }

  std::uint32_t max_rows_;
  std::uint32_t num_experts_;
  std::uint32_t top_k_;
  std::vector<std::uint32_t> experts_;    // [T, k]
  std::vector<float> weights_;            // [T, k]
  std::vector<std::uint32_t> places_;     // [T, k]
  std::vector<std::uint32_t> row_at_;     // [T·k]
  std::vector<std::uint32_t> expert_at_;  // [T·k]
  std::vector<std::uint32_t> first_;      // [X + 1]
};

}  // namespace quire::cpu
