#include "gpu/norms.h"

#include "core/backend/device_cast.h"
#include "gpu/tensors.h"

namespace quire::gpu {

using backend::AttentionSpec;
using backend::HeadNorm;

namespace {

const float* values_of(const backend::Vector& vector) {
  return backend::device_cast<const DeviceVector>(vector).data();
}

bool in_rope_store(const HeadNorm& heads, std::uint32_t head_dim) {
  return heads.norm.kind == backend::NormKind::kRms && !heads.whole_row && heads.norm.scale->size() == head_dim;
}

// RopeStore's own norm, or none.
NormView rope_store_norm(const HeadNorm& heads, std::uint32_t head_dim) {
  return heads && in_rope_store(heads, head_dim) ? view_of(heads.norm) : NormView{};
}

}  // namespace

NormView view_of(const backend::Norm& norm) { return {values_of(*norm.scale), norm.eps}; }

AttentionView view_of(const AttentionSpec& spec) {
  AttentionView view;
  view.num_heads = spec.num_heads;
  view.num_kv_heads = spec.num_kv_heads;
  view.head_dim = spec.head_dim;
  view.scale = spec.scale;
  view.window = spec.window;
  view.softcap = spec.softcap;
  if (spec.bias) view.slopes = values_of(*spec.bias.slopes) + spec.bias.first;
  view.biases_in_bf16 = spec.bias.in_bf16;
  if (spec.sinks) view.sinks = values_of(*spec.sinks.scores) + spec.sinks.first;
  view.q_norm = rope_store_norm(spec.q_norm, spec.head_dim);
  view.k_norm = rope_store_norm(spec.k_norm, spec.head_dim);
  view.norms_after_rope = spec.norms_after_rope;
  if (spec.q_scale != nullptr) view.q_scale = values_of(*spec.q_scale);
  view.k_factor = spec.k_factor;
  view.v_factor = spec.v_factor;
  view.stores = spec.stores;
  if (spec.rope == nullptr) return view;
  const auto& rope = backend::device_cast<const DeviceRope>(*spec.rope);
  view.cosines = rope.cosines();
  view.sines = rope.sines();
  view.half = rope.half();
  return view;
}

void start_norm(Device& device, const NormGroups& groups, const float* x, std::uint32_t stride, std::uint32_t rows,
                float* out) {
  NormRows::Args args;
  args.x = x;
  args.scale = values_of(*groups.norm.scale) + groups.first;
  args.eps = groups.norm.eps;
  args.width = groups.width;
  args.out = out;
  args.stride = stride;
  args.scale_stride = groups.step;
  if (groups.norm.bias != nullptr) args.bias = values_of(*groups.norm.bias) + groups.first;
  args.kind = groups.norm.kind;
  device.start(device.kernels().norm, {rows, groups.count}, args);
}

void norm_heads(Device& device, const AttentionSpec& spec, float* qkv, std::uint32_t stride, std::uint32_t rows) {
  const auto norm = [&](const HeadNorm& heads, std::uint32_t column, std::uint32_t num_heads, bool in_kernel) {
    if (!heads || (in_kernel && in_rope_store(heads, spec.head_dim))) return;
    const bool shared = heads.norm.scale->size() == spec.head_dim;
    NormGroups groups{heads.norm, spec.head_dim, shared ? 0 : heads.first, num_heads, shared ? 0 : spec.head_dim};
    if (heads.whole_row) groups = {heads.norm, num_heads * spec.head_dim};
    start_norm(device, groups, qkv + column, stride, rows, qkv + column);
  };
  norm(spec.q_norm, 0, spec.num_heads, true);
  if (!spec.stores) return;
  norm(spec.k_norm, spec.q_width(), spec.num_kv_heads, true);
  norm(spec.v_norm, spec.q_width() + spec.kv_width(), spec.num_kv_heads, false);
}

}  // namespace quire::gpu
