// GPT-J: attention and a plain MLP side by side behind one LayerNorm, RoPE by neighbours of the first dimensions.
#include <cmath>

#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

// Of so many dimensions of a head: the quotient, or the number above it if its product with head_dim rounds down.
double fraction_of(std::uint32_t turned, std::uint32_t head_dim) {
  const double fraction = static_cast<double>(turned) / head_dim;
  return static_cast<std::uint32_t>(fraction * head_dim) == turned ? fraction : std::nextafter(fraction, 2.0);
}

}  // namespace

ModelSpec read_gptj(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "gptj";
  defaults.keys = {"n_embd", "n_layer", "n_head", kNoKey, "n_inner", "n_positions"};
  defaults.hiddens_of_mlp = 4;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.set_layer_norms("layer_norm_epsilon");
  defaults.activation_key = "activation_function";
  defaults.activation = "gelu_new";
  ModelSpec spec = read_model(fields, defaults);
  const std::uint32_t head_dim = spec.layers.front().attention.head_dim;
  const auto given = static_cast<std::uint32_t>(fields.optional_uint("rotary_dim", 2, head_dim).value_or(64));
  const std::uint32_t turned = fields.is_null("rotary_dim") ? head_dim : given;
  set_rope(fields, {.rotary_fraction = fraction_of(turned, head_dim), .partial = true}, spec);
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
