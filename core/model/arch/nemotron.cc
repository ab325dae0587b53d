// Nemotron (Minitron, Nemotron-4): LayerNorms that multiply by 1 + w, RoPE of half of a head, a plain MLP with squared
// relu.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_nemotron(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "nemotron";
  defaults.positions = 4096;
  defaults.kv_heads_of_heads = true;
  defaults.set_layer_norms("norm_eps");
  defaults.activation = "relu2";
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.rotary_fraction = 0.5, .partial = true}, spec);
  set_biases(fields, spec);
  for (LayerSpec& layer : spec.layers) layer.mlp.gated = false;
  spec.norm_offset = 1.0f;
  return spec;
}

}  // namespace quire::model
