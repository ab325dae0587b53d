// GPT-NeoX (Pythia, Dolly): attention and a plain MLP side by side, each behind a LayerNorm of its own, RoPE of a
// quarter of a head, q, k and v in one tensor head by head.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_gpt_neox(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "gpt_neox";
  defaults.keys.kv_heads = kNoKey;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.set_layer_norms("layer_norm_eps");
  defaults.activation = "gelu";
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields,
           {.theta = fields.optional_number("rotary_emb_base", 2.0, 1e15).value_or(10000.0),
            .rotary_fraction = fields.optional_number("rotary_pct", 1e-3, 1.0).value_or(0.25),
            .partial = true},
           spec);
  const bool parallel = read_flag(fields, "use_parallel_residual", true);
  const bool biased = read_flag(fields, "attention_bias", true);
  for (LayerSpec& layer : spec.layers) {
    if (parallel) layer.placement = Placement::kParallelNorms;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.mlp.gated = false;
    layer.mlp.bias = true;
  }
  spec.names.embedding = "embed_in";
  spec.names.qkv = "attention.query_key_value";
  spec.names.qkv_by_kv_head = true;
  spec.names.out = "attention.dense";
  spec.names.up = "mlp.dense_h_to_4h";
  spec.names.down = "mlp.dense_4h_to_h";
  spec.names.final_norm = "final_layer_norm";
  spec.names.skipped = {"*.attention.bias", "*.attention.masked_bias"};
  return spec;
}

}  // namespace quire::model
