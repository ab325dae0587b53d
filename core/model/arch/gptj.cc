// GPT-J: attention and a plain MLP side by side behind one LayerNorm, RoPE by neighbours of the first dimensions.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_gptj(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "gptj";
  defaults.keys = {"n_embd", "n_layer", "n_head", kNoKey, "n_inner", "n_positions"};
  defaults.hiddens_of_mlp = 4;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.eps_key = "layer_norm_epsilon";
  defaults.eps = 1e-5;
  defaults.norm = backend::NormKind::kLayer;
  defaults.norm_bias = true;
  defaults.activation_key = "activation_function";
  defaults.activations = {"gelu_new", "gelu_pytorch_tanh"};
  defaults.activation = backend::Activation::kGeluTanh;
  ModelSpec spec = read_model(fields, defaults);
  const std::uint32_t head_dim = spec.layers.front().attention.head_dim;
  const double turned = fields.is_null("rotary_dim")
                            ? head_dim
                            : static_cast<double>(fields.optional_uint("rotary_dim", 2, head_dim).value_or(64));
  set_rope(fields, {.rotary_fraction = turned / head_dim, .partial = true}, spec);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kParallel;
    layer.attention.interleaved = true;
    layer.mlp.gated = false;
    layer.mlp.bias = true;
  }
  spec.head_bias = true;
  TensorNames& names = spec.names;
  names.embedding = "wte";
  names.layers = "h";
  names.input_norm = "ln_1";
  names.q = "attn.q_proj";
  names.k = "attn.k_proj";
  names.v = "attn.v_proj";
  names.out = "attn.out_proj";
  names.up = "mlp.fc_in";
  names.down = "mlp.fc_out";
  names.final_norm = "ln_f";
  names.skipped = {"*.attn.bias", "*.attn.masked_bias", "*.attn.embed_positions"};
  return spec;
}

}  // namespace quire::model
