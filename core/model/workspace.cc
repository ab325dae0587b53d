#include "core/model/workspace.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::model {

void BuffersByWidth::add(backend::Factory& factory, std::uint32_t max_rows, std::uint32_t width) {
  const auto is_there = [&](const auto& buffer) { return buffer->width() == width; };
  if (std::ranges::none_of(buffers_, is_there)) buffers_.push_back(factory.make_buffer(max_rows, width));
}

backend::Buffer& BuffersByWidth::of(std::uint32_t width) const {
  const auto found = std::ranges::find_if(buffers_, [&](const auto& buffer) { return buffer->width() == width; });
  CHECK(found != buffers_.end());
  return **found;
}

Workspace make_workspace(backend::Factory& factory, const ModelSpec& spec, std::span<const Layer> layers,
                         std::uint32_t max_rows, std::uint32_t max_logits_rows, const Captures& captures) {
  const std::uint32_t hidden = spec.hidden;
  Workspace workspace;
  workspace.x = factory.make_buffer(max_rows, hidden);
  workspace.normed = factory.make_buffer(max_rows, hidden);
  workspace.product = factory.make_buffer(max_rows, hidden);
  const auto has_two_norms = [](const LayerSpec& layer) { return layer.placement == Placement::kParallelNorms; };
  if (std::ranges::any_of(spec.layers, has_two_norms)) workspace.mlp_normed = factory.make_buffer(max_rows, hidden);
  for (const Layer& layer : layers) {
    if (layer.latent) {
      workspace.qkv.add(factory, max_rows, layer.qkv.n());
    } else {
      workspace.qkv.add(factory, max_rows, layer.attention.qkv_width());
      workspace.attention.add(factory, max_rows, layer.attention.q_width());
    }
    if (layer.has_mlp()) {
      workspace.gate_up.add(factory, max_rows, layer.gate_up.n());
      workspace.activated.add(factory, max_rows, layer.down[0].k());
    }
    if (!layer.attention_inner_norm) continue;
    workspace.inner_normed.add(factory, max_rows, layer.attention.q_width());
    workspace.inner_normed.add(factory, max_rows, layer.down[0].k());
  }
  if (spec.per_layer) {
    const std::uint32_t width = spec.per_layer->width;
    workspace.per_layer = factory.make_buffer(max_rows, spec.num_layers() * width);
    workspace.projected = factory.make_buffer(max_rows, spec.num_layers() * width);
    workspace.gate_up.add(factory, max_rows, width);
    workspace.activated.add(factory, max_rows, width);
  }
  if (const MixtureSpec* mixture = spec.mixture()) {
    workspace.experts = MixtureBuffers(factory, spec, *mixture, max_rows);
  }
  const auto latent =
      std::ranges::find_if(spec.layers, [](const LayerSpec& layer) { return layer.attention.latent.has_value(); });
  if (latent != spec.layers.end()) workspace.latent = LatentBuffers(factory, latent->attention, max_rows);
  if (spec.altup) workspace.streams = StreamBuffers(factory, *spec.altup, max_rows, hidden);
  workspace.logits_rows = factory.make_buffer(max_logits_rows, hidden);
  workspace.normed_rows = factory.make_buffer(max_logits_rows, hidden);
  if (spec.projects_embedding()) {
    workspace.narrow = factory.make_buffer(max_rows, spec.embedding);
    workspace.narrow_rows = factory.make_buffer(max_logits_rows, spec.embedding);
  }
  workspace.logits = factory.make_buffer(max_logits_rows, spec.vocab);
  workspace.captures = captures;
  if (captures.num() > 0) workspace.states = factory.make_buffer(max_rows, captures.num() * hidden);
  return workspace;
}

}  // namespace quire::model
