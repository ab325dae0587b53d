#include "core/cpu/expert_ops.h"

#include <algorithm>
#include <numeric>

#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/cpu/experts/route.h"
#include "core/sample/math.h"

namespace quire::cpu {

using backend::Buffer;
using backend::device_cast;
using backend::ExpertWeights;
using backend::RouteRule;
using backend::Routes;
using backend::SharedExpert;
using backend::ThenActivate;
using backend::Vector;
using backend::WeightList;

namespace {

Product product_of(const KernelContext& context, const HostBuffer& x, const PackedWeight& w, HostBuffer& out,
                   std::uint32_t column) {
  return {context, x, w, out, column};
}

// The activation of gates and of ups that are `width` values behind them.
class Activate {
 public:
  Activate(const Kernels& kernels, const ThenActivate& then)
      : kernels_(kernels), kind_(then.kind), is_clamped_(then.clamp.has_value()) {
    if (!is_clamped_) return;
    numbers_[0] = then.clamp->alpha;
    numbers_[1] = then.clamp->limit;
  }
  void operator()(const float* gates, std::size_t width, std::size_t n, float* out) const {
    if (is_clamped_) return kernels_.clamped(gates, gates + width, numbers_, n, out);
    kernels_.activate[static_cast<int>(kind_)](gates, gates + width, n, out);
  }

 private:
  const Kernels& kernels_;
  backend::Activation kind_;
  bool is_clamped_;
  float numbers_[2] = {};
};

// True if gates and ups are tiles of the same outputs: can_fuse_gate_up(), of every expert.
bool can_activate_in_chunks(ExpertWeights weights, const ThenActivate& then) {
  const auto fits = [&](const WeightList& list) { return list.size() == 1 && list.n() / 2 % kLanes == 0; };
  return then.gated && std::ranges::all_of(weights, fits);
}

}  // namespace

void ExpertChunks::reserve(const KernelContext& context, std::uint32_t num_experts) {
  // A share is rounded up, and cut into at most 1 chunk more than its size asks for.
  chunks_.reserve(std::max(chunks_.capacity(), std::size_t{2} * num_experts + most_chunks(context.team.size())));
}

std::unique_ptr<Routes> ExpertOps::make_routes(std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k) {
  chunks_.reserve(context(), num_experts);
  scores_.resize(std::max(scores_.size(), std::size_t{context().team.size()} * num_experts));
  context().coder.reserve_rows(max_rows * top_k);
  return std::make_unique<HostRoutes>(max_rows, num_experts, top_k);
}

void ExpertOps::route(Buffer& logits, const RouteRule& rule, const backend::RouteVectors& vectors, std::uint32_t rows,
                      Routes& routes) {
  backend::expect_route(logits, rule, vectors, rows, routes);
  auto& values = device_cast<HostBuffer>(logits);
  auto& chosen = device_cast<HostRoutes>(routes);
  const auto values_of = [](const Vector* vector) {
    return vector == nullptr ? nullptr : device_cast<const HostVector>(*vector).data();
  };
  const HostRouteVectors host{values_of(vectors.bias), values_of(vectors.scales)};
  const std::size_t width = rule.num_experts;
  const RowChunks chunks(context().team, rows, width * 16 * sizeof(float));
  context().team.for_chunks(chunks.count(), [&](std::uint32_t chunk, std::uint32_t worker) {
    chunks.for_rows(chunk, [&](std::uint32_t row) {
      route_row(context().kernels, rule, host, {values.row(row), width},
                std::span(scores_).subspan(worker * width, width), chosen.experts(row), chosen.weights(row));
    });
  });
  chosen.index(rows);
}

void ExpertOps::gather_by_expert(const Buffer& x, const Routes& routes, std::uint32_t rows, Buffer& out) {
  backend::expect_gather_by_expert(x, routes, rows, out);
  const auto& from = device_cast<const HostBuffer>(x);
  auto& to = device_cast<HostBuffer>(out);
  const auto& chosen = device_cast<const HostRoutes>(routes);
  for_rows(context().team, rows * chosen.top_k(), std::size_t{x.width()} * 2 * sizeof(float),
           [&](std::uint32_t place) { std::copy_n(from.row(chosen.row_at(place)), x.width(), to.row(place)); });
}

void ExpertOps::route_to_all(std::uint32_t rows, Routes& routes) {
  CHECK_LE(rows, routes.max_rows());
  CHECK_EQ(routes.top_k(), routes.num_experts());
  auto& chosen = device_cast<HostRoutes>(routes);
  for (std::uint32_t row = 0; row < rows; ++row) {
    std::iota(chosen.experts(row).begin(), chosen.experts(row).end(), 0u);
    std::ranges::fill(chosen.weights(row), 1.0f);
  }
  chosen.index(rows);
}

void ExpertOps::gather_heads(const Buffer& x, std::uint32_t column, const Routes& routes, std::uint32_t rows,
                             Buffer& out) {
  backend::expect_gather_heads(x, column, routes, rows, out);
  const auto& from = device_cast<const HostBuffer>(x);
  auto& to = device_cast<HostBuffer>(out);
  const auto& chosen = device_cast<const HostRoutes>(routes);
  const std::size_t width = out.width();
  for_rows(context().team, rows * chosen.top_k(), width * 2 * sizeof(float), [&](std::uint32_t place) {
    std::copy_n(from.row(chosen.row_at(place)) + column + chosen.expert_at(place) * width, width, to.row(place));
  });
}

void ExpertOps::place_heads(const Buffer& x, const Routes& routes, std::uint32_t rows, std::uint32_t column,
                            std::uint32_t stride, Buffer& out) {
  backend::expect_place_heads(x, routes, rows, column, stride, out);
  const auto& from = device_cast<const HostBuffer>(x);
  auto& to = device_cast<HostBuffer>(out);
  const auto& chosen = device_cast<const HostRoutes>(routes);
  const std::size_t width = x.width();
  for_rows(context().team, rows * chosen.top_k(), width * 2 * sizeof(float), [&](std::uint32_t place) {
    const std::size_t at = column + std::size_t{chosen.expert_at(place)} * stride;
    std::copy_n(from.row(place), width, to.row(chosen.row_at(place)) + at);
  });
}

template <typename Body>
void ExpertOps::run(const HostBuffer& x, ExpertWeights weights, std::size_t part, const HostRoutes& routes,
                    std::uint32_t num_places, HostBuffer& out, const Body& body) {
  const bool codes = weight_of(weights, 0, part).wants_codes();
  const RowChunks preparing(context().team, codes ? num_places : 0, std::size_t{x.width()} * 2 * sizeof(float));
  context().team.for_chunks(
      preparing.count(),
      [&](std::uint32_t chunk, std::uint32_t) {
        preparing.for_rows(chunk, [&](std::uint32_t place) {
          product_of(context(), x, weight_of(weights, routes.expert_at(place), part), out, 0).prepare(place);
        });
      },
      chunks_.num_jobs(),
      [&](std::uint32_t job, std::uint32_t) {
        for (const ExpertChunk& chunk : chunks_.job(job)) body(chunk);
      });
}

void ExpertOps::linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows,
                                 Buffer& out, const ThenActivate* then) {
  backend::expect_linear_by_expert(x, weights, routes, rows, out, then);
  const auto& in = device_cast<const HostBuffer>(x);
  auto& products = device_cast<HostBuffer>(out);
  const auto& chosen = device_cast<const HostRoutes>(routes);
  const std::uint32_t num_places = rows * chosen.top_k();
  if (then != nullptr && can_activate_in_chunks(weights, *then)) {
    return multiply_activate(in, weights, chosen, num_places, products, *then);
  }
  std::uint32_t column = 0;
  for (std::size_t part = 0; part < weights.front().size(); ++part) {
    chunks_.plan(context(), weights, part, chosen,
                 [&](const PackedWeight& w) { return num_units(context().kernels, w.num_panels()); });
    run(in, weights, part, chosen, num_places, products, [&](const ExpertChunk& chunk) {
      const PackedWeight& w = weight_of(weights, chunk.expert, part);
      product_of(context(), in, w, products, column)
          .multiply(chunk.places, panels_of(context().kernels, w, chunk.units));
    });
    column += weights.front()[part].n();
  }
  if (then == nullptr) return;
  if (!then->clamp) return activate(out, then->kind, then->gated, num_places, *then->out, then->xielu);
  const Activate clamp(context().kernels, *then);
  auto& activated = device_cast<HostBuffer>(*then->out);
  for_rows(context().team, num_places, std::size_t{activated.width()} * 4 * sizeof(float), [&](std::uint32_t place) {
    clamp(products.row(place), activated.width(), activated.width(), activated.row(place));
  });
}

// Units are tiles of the gates, with the same outputs of up.
void ExpertOps::multiply_activate(const HostBuffer& x, ExpertWeights weights, const HostRoutes& routes,
                                  std::uint32_t num_places, HostBuffer& products, const ThenActivate& then) {
  const Kernels& kernels = context().kernels;
  auto& out = device_cast<HostBuffer>(*then.out);
  const Activate activate(kernels, then);
  const std::uint32_t width = out.width();
  const std::uint32_t num_gates = width / kLanes;  // panels
  chunks_.plan(context(), weights, 0, routes, [&](const PackedWeight&) { return num_units(kernels, num_gates); });
  run(x, weights, 0, routes, num_places, products, [&](const ExpertChunk& chunk) {
    const PackedWeight& w = weight_of(weights, chunk.expert, 0);
    Range gates = panels_of(kernels, w, chunk.units);
    gates.last = std::min(gates.last, num_gates);
    const Product product = product_of(context(), x, w, products, 0);
    product.multiply(chunk.places, gates);
    product.multiply(chunk.places, {num_gates + gates.first, num_gates + gates.last});
    const std::size_t first = gates.first * kLanes;
    for (std::uint32_t place = chunk.places.first; place < chunk.places.last; ++place) {
      activate(products.row(place) + first, width, gates.last * kLanes - first, out.row(place) + first);
    }
  });
}

void ExpertOps::combine_experts(const Buffer& y, const Routes& routes, const SharedExpert& shared, std::uint32_t rows,
                                Buffer& out) {
  backend::expect_combine_experts(y, routes, shared, rows, out);
  const Kernels& kernels = context().kernels;
  const auto& products = device_cast<const HostBuffer>(y);
  const auto& chosen = device_cast<const HostRoutes>(routes);
  auto& sums = device_cast<HostBuffer>(out);
  const std::size_t width = out.width();
  for_rows(context().team, rows, width * (chosen.top_k() + 2) * sizeof(float), [&](std::uint32_t row) {
    const auto places = chosen.places(row);
    const auto weights = chosen.weights(row);
    float* sum = sums.row(row);
    std::copy_n(products.row(places[0]), width, sum);
    kernels.rescale(sum, weights[0], 0.0f, width);
    for (std::size_t i = 1; i < places.size(); ++i) kernels.add(sum, products.row(places[i]), weights[i], width);
    if (shared.rows == nullptr) return;
    const float* gate = shared.gate == nullptr ? nullptr : device_cast<const HostBuffer>(*shared.gate).row(row);
    const float weight = gate == nullptr ? 1.0f : 1.0f / (1.0f + sample::exp_f32(-*gate));
    kernels.add(sum, device_cast<const HostBuffer>(*shared.rows).row(row), weight, width);
  });
}

void ExpertOps::read_routes(const Routes& routes, std::uint32_t rows, std::span<std::uint32_t> experts,
                            std::span<float> weights) {
  CHECK_LE(rows, routes.max_rows());
  CHECK_EQ(experts.size(), std::size_t{rows} * routes.top_k());
  CHECK_EQ(weights.size(), experts.size());
  const auto& chosen = device_cast<const HostRoutes>(routes);
  for (std::uint32_t row = 0; row < rows; ++row) {
    std::ranges::copy(chosen.experts(row), experts.begin() + std::ptrdiff_t{row} * routes.top_k());
    std::ranges::copy(chosen.weights(row), weights.begin() + std::ptrdiff_t{row} * routes.top_k());
  }
}

}  // namespace quire::cpu
