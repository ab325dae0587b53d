// The experts of one row, by the equations of StepOps::route().
// Shape   logits [X], overwritten; scores [X] scratch; experts and weights [k], ascending by the expert's index.
// Thread  any; pure.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend/experts.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

// backend::RouteVectors as numbers: [X], or null.
struct HostRouteVectors {
  const float* bias = nullptr;
  const float* scales = nullptr;
};

void route_row(const Kernels& kernels, const backend::RouteRule& rule, const HostRouteVectors& vectors,
               std::span<float> logits, std::span<float> scores, std::span<std::uint32_t> experts,
               std::span<float> weights);

}  // namespace quire::cpu
