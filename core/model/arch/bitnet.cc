// BitNet b1.58, of weights in bf16: Llama with squared relu, and norms before the output matrices of attention and MLP.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_bitnet(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "bitnet";
  defaults.kv_heads = 5;
  defaults.eps = 1e-5;
  defaults.activation = "relu2";
  ModelSpec spec = read_model(fields, defaults);
  const AttentionLayer& attention = spec.layers.front().attention;
  if (attention.q_width() != spec.hidden) {
    fields.refuse("head_dim", "(given, or hidden_size / num_attention_heads) is " + std::to_string(attention.head_dim) +
                                  "; expected hidden_size / num_attention_heads, because a norm spans all heads");
  }
  set_rope(fields, {.theta = 500000.0}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.inner_norms = true;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  return spec;
}

}  // namespace quire::model
