#include "gpu/costs.h"

#include "gpu/kernels/linear_dot.h"

namespace quire::gpu {
namespace {

using backend::WeightType;

constexpr double kFloat = sizeof(float);

// Of one row as the tensor cores read it.
double prepared_bytes(WeightType type, std::uint32_t k) {
  const double numbers = 1.0 * num_steps(k) * kStepInputs;
  return in_integers(type) ? numbers + kFloat * num_slices(k) : 2 * numbers;
}

}  // namespace

Cost linear_cost(WeightType type, std::uint32_t n, std::uint32_t k, std::uint32_t rows, Finish finish) {
  if (rows == 0) return {};
  Cost cost;
  cost.flops = 2.0 * n * k * rows;
  const double results = kFloat * n * rows * (finish == Finish::kAdd ? 2.0 : finish == Finish::kGate ? 0.5 : 1.0);
  const auto weights = static_cast<double>(number_bytes(type, n, k));
  if (!in_tiles(type)) {  // each block of rows reads all weights, each block of outputs all rows
    cost.bytes =
        weights * pieces_of(rows, LinearDot::kRows) + kFloat * k * rows * pieces_of(n, LinearDot::kThreads) + results;
    return cost;
  }
  const auto kept = static_cast<double>(num_kept(linear_grid(type, n, k, rows), n, rows));
  cost.bytes =
      weights + (has_scales(type) ? kFloat * n : 0.0) + prepared_bytes(type, k) * rows + 2 * kFloat * kept + results;
  return cost;
}

Cost linear_rows_cost(WeightType type, std::uint32_t k, std::uint32_t rows, bool with_norm) {
  if (!in_tiles(type)) return {};
  Cost cost;
  cost.bytes = (kFloat * k + prepared_bytes(type, k)) * rows + (with_norm ? kFloat * k : 0.0);
  cost.flops = 1.0 * k * rows * ((with_norm ? 4.0 : 0.0) + (in_integers(type) ? 3.0 : 1.0));
  return cost;
}

}  // namespace quire::gpu
