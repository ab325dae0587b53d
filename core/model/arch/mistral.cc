// Mistral: Llama with one window for all layers, or none. Ministral: with windows by layer.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_mistral(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "mistral", .positions = 131072});
  refuse_bias(fields, "attention_bias", spec, "attention biases");
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  set_rope(fields, {}, spec);
  const std::uint32_t window = read_window(fields, 4096);
  const auto sliding = read_sliding(fields, spec.layers.size());
  for (std::size_t layer = 0; sliding && layer < sliding->size(); ++layer) {
    if ((*sliding)[layer] != (window != 0)) {
      fields.refuse("layer_types", "differs from sliding_window for layer " + std::to_string(layer) +
                                       "; mistral has one kind of attention in all layers");
    }
  }
  for (LayerSpec& layer : spec.layers) layer.attention.window = window;
  return spec;
}

ModelSpec read_ministral(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "ministral", .positions = 131072, .kv_heads = 8});
  refuse_bias(fields, "attention_bias", spec, "attention biases");
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  set_rope(fields, {}, spec);
  const std::uint32_t window = read_window(fields, 4096);
  const std::vector<bool> sliding(spec.layers.size(), window != 0);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), window, spec);
  return spec;
}

}  // namespace quire::model
