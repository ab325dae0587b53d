// Arcee (AFM): Llama with a plain MLP and squared relu.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_arcee(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "arcee";
  defaults.positions = 4096;
  defaults.kv_heads_of_heads = true;
  defaults.eps = 1e-5;
  defaults.activation = "relu2";
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {}, spec);
  set_biases(fields, spec);
  for (LayerSpec& layer : spec.layers) layer.mlp.gated = false;
  return spec;
}

}  // namespace quire::model
