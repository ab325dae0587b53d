// Mixtures of experts as data: the rule by which a router's logits choose experts for a row, the experts' weights, and
// the rows that each expert has in a step.
// Shape   X experts, k of which each row has. Rows by expert are [T·k]: those of expert 0 in ascending order, then
//         those of expert 1, and so on.
// Owner   the caller owns everything pointed to.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend/linear.h"
#include "core/backend/tensors.h"

namespace quire::backend {

// Equations: StepOps::route().
enum class RouteScore : std::uint8_t { kSoftmax, kSigmoid, kLogit, kSparsemixer };

struct RouteRule {
  std::uint32_t num_experts = 0;  // X
  std::uint32_t top_k = 0;        // k
  RouteScore score = RouteScore::kSoftmax;
  std::uint32_t num_groups = 1;  // of equally many experts, of which a row has those of top_groups; 1: no groups
  std::uint32_t top_groups = 1;
  bool groups_by_highest = false;  // groups are ordered by their highest score instead of the sum of the two highest
  bool normed = false;             // the weights of a row are divided by max(their sum + norm_eps, norm_least)
  float norm_eps = 0.0f;
  float norm_least = 0.0f;
  float scale = 1.0f;   // of the weights
  float margin = 0.0f;  // kSparsemixer
  bool operator==(const RouteRule&) const = default;
};

// Vectors [X] of a router; null: none.
struct RouteVectors {
  const Vector* bias = nullptr;    // of the scores by which experts are chosen
  const Vector* scales = nullptr;  // of the weights of the chosen ones
};

// The experts of each row of a step and their weights, on the device. Contents are those of the last route().
class Routes {
 public:
  virtual ~Routes() = default;
  virtual std::uint32_t max_rows() const = 0;
  virtual std::uint32_t num_experts() const = 0;
  virtual std::uint32_t top_k() const = 0;
};

// The same matrix of each expert [X].
using ExpertWeights = std::span<const WeightList>;

// The output of an expert that every row has, and the logit of its gate. No rows: there is no such expert; no gate: its
// weight is 1.
struct SharedExpert {
  const Buffer* rows = nullptr;  // [T, E]
  const Buffer* gate = nullptr;  // [T, 1]
};

}  // namespace quire::backend
