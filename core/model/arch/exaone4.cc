// EXAONE 4: norms after attention and MLP, and of each head of q and k. Where layers slide, the full ones have no
// positions.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

// Three layers slide, the fourth is full; no layer slides without a window.
std::vector<bool> sliding_layers(const JsonFields& fields, std::size_t num_layers, std::uint32_t window) {
  if (const auto given = read_sliding(fields, num_layers)) return *given;
  if (window == 0) return std::vector<bool>(num_layers, false);
  return sliding_pattern(
      num_layers, static_cast<std::uint32_t>(fields.optional_uint("sliding_window_pattern", 1, 4096).value_or(4)));
}

}  // namespace

ModelSpec read_exaone4(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "exaone4", .positions = 2048, .kv_heads = 32, .eps = 1e-5});
  set_rope(fields, {}, spec);
  const std::uint32_t window = read_window(fields, 4096);
  set_windows(fields, sliding_layers(fields, spec.layers.size(), window), window, spec);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kPost;
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    if (window != 0 && layer.attention.window == 0) layer.attention.rope = AttentionLayer::kNoRope;
  }
  return spec;
}

}  // namespace quire::model
