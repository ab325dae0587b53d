#include "core/model/mixture.h"

#include <algorithm>

namespace quire::model {

Mixture make_mixture(const Weights& weights, const LayerSpec& of_layer, std::uint32_t layer) {
  const MixtureSpec& spec = *of_layer.experts;
  Mixture mixture;
  mixture.rule = spec.rule;
  mixture.router = weights.list(Role::kExpertRouter, layer);
  mixture.vectors = {weights.vector(Role::kExpertChoiceBias, layer), weights.vector(Role::kExpertScales, layer)};
  const auto norm = [&](Role role) {
    return backend::Norm{weights.vector(role, layer), of_layer.norm.eps, of_layer.norm.kind, weights.bias(role, layer)};
  };
  mixture.router_norm = norm(Role::kExpertRouterNorm);
  mixture.norm = norm(Role::kExpertsNorm);
  mixture.out_norm = norm(Role::kExpertsOutNorm);
  mixture.shared_norm = norm(Role::kSharedExpertNorm);
  for (std::uint32_t expert = 0; expert < spec.rule.num_experts; ++expert) {
    mixture.gate_up.push_back(weights.list(Role::kExpertGateUp, layer, expert));
    mixture.down.push_back(weights.list(Role::kExpertDown, layer, expert));
  }
  if (spec.shared_gate) mixture.shared_gate = weights.list(Role::kSharedExpertGate, layer);
  mixture.activation = spec.expert.activation;
  mixture.clamp = spec.expert.clamp;
  mixture.gated = spec.expert.gated;
  return mixture;
}

MixtureBuffers::MixtureBuffers(backend::Factory& factory, const ModelSpec& spec, const MixtureSpec& mixture,
                               std::uint32_t max_rows) {
  const std::uint32_t width = mixture.expert.width;
  const std::uint32_t all = max_rows * mixture.rule.top_k;
  routes_ = factory.make_routes(max_rows, mixture.rule.num_experts, mixture.rule.top_k);
  logits_ = factory.make_buffer(max_rows, mixture.rule.num_experts);
  by_expert_ = factory.make_buffer(all, spec.hidden);
  gate_up_ = factory.make_buffer(all, mixture.expert.gated ? 2 * width : width);
  activated_ = factory.make_buffer(all, width);
  shared_ = factory.make_buffer(max_rows, spec.hidden);
  gate_ = factory.make_buffer(max_rows, 1);
}

void run_mixture(backend::Ops& ops, const Mixture& mixture, const MixtureInput& in, bool has_shared, std::uint32_t rows,
                 const MixtureBuffers& buffers, backend::Buffer& out) {
  const backend::Routes& routes = *buffers.routes_;
  const auto normed = [&](const backend::Norm& norm) -> const backend::Buffer& {
    if (!norm) return *in.normed;
    ops.norm(*in.rows, norm, rows, *in.scratch);
    return *in.scratch;
  };
  ops.linear(normed(mixture.router_norm), mixture.router, rows, *buffers.logits_);
  ops.route(*buffers.logits_, mixture.rule, mixture.vectors, rows, *buffers.routes_);
  const backend::Buffer& x = normed(mixture.norm);
  ops.gather_by_expert(x, routes, rows, *buffers.by_expert_);
  const backend::ThenActivate activate{buffers.activated_.get(), mixture.activation, mixture.gated, {}, mixture.clamp};
  ops.linear_by_expert(*buffers.by_expert_, mixture.gate_up, routes, rows, *buffers.gate_up_, &activate);
  ops.linear_by_expert(*buffers.activated_, mixture.down, routes, rows, *buffers.by_expert_);
  backend::SharedExpert shared;
  if (has_shared && !mixture.shared_norm) shared.rows = buffers.shared_.get();
  if (mixture.shared_gate.size() != 0) {
    ops.linear(x, mixture.shared_gate, rows, *buffers.gate_);
    shared.gate = buffers.gate_.get();
  }
  ops.combine_experts(*buffers.by_expert_, routes, shared, rows, out);
  if (mixture.out_norm) ops.norm(out, mixture.out_norm, rows, out);
  if (!has_shared || !mixture.shared_norm) return;
  ops.norm(*buffers.shared_, mixture.shared_norm, rows, *buffers.shared_);
  ops.add(out, *buffers.shared_, 1.0f, rows);
}

void fit_experts(const Checkpoint& checkpoint, ModelSpec& spec) {
  const auto mixes = [](const LayerSpec& layer) { return layer.experts.has_value(); };
  const auto first = std::ranges::find_if(spec.layers, mixes);
  if (first == spec.layers.end()) return;
  ExpertNames& names = spec.names.experts;
  const auto layer = static_cast<std::uint32_t>(first - spec.layers.begin());
  const Tensor* together = checkpoint.find(name_in_layer(spec.names, layer, names.all_down));
  if (together == nullptr) {
    names.layout = ExpertNames::Layout::kSeparate;
  } else if (together->coded && (together->matrix == nullptr || together->blocks() == backend::BlockType::kMXFP4)) {
    // Blocks lie along the inputs.
    names.layout = ExpertNames::Layout::kTogether;
  } else if (together->shape.size() == 3 && together->shape[1] != together->shape[2]) {
    const bool inputs_last = together->shape[2] == first->experts->expert.width;
    names.layout = inputs_last ? ExpertNames::Layout::kTogether : ExpertNames::Layout::kTransposed;
  } else if (names.layout == ExpertNames::Layout::kSeparate) {
    names.layout = ExpertNames::Layout::kTogether;
  }
}

}  // namespace quire::model
