// gpt-oss: Llama with biases, sinks, layers that slide, and experts with biases whose gates and ups are limited, in
// tensors of all experts in which they alternate: transposed, or in MXFP4.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

// Every second layer slides, the first among them.
std::vector<bool> sliding_layers(const JsonFields& fields, std::size_t num_layers) {
  return read_sliding(fields, num_layers).value_or(sliding_pattern(num_layers, 2));
}

void name_tensors(ModelSpec& spec) {
  ExpertNames& names = spec.names.experts;
  names.router = "mlp.router";
  names.layout = ExpertNames::Layout::kTransposed;
  names.alternating = true;
}

}  // namespace

ModelSpec read_gpt_oss(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "gpt_oss";
  defaults.positions = 131072;
  defaults.kv_heads = 8;
  defaults.head_dim = 64;
  defaults.eps = 1e-5;
  defaults.takes_mxfp4 = true;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 150000.0}, spec);
  set_windows(fields, sliding_layers(fields, spec.layers.size()), read_window(fields, 128), spec);
  const bool biased = read_flag(fields, "attention_bias", true);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.attention.sinks = true;
  }
  MixtureSpec mixture =
      read_mixture(fields, spec, {.num_experts = 128, .top_k = 4, .width = 2880, .width_key = "intermediate_size"});
  mixture.rule.score = backend::RouteScore::kLogit;
  mixture.router_bias = mixture.expert.bias = true;
  mixture.expert.clamp =
      backend::Clamp{static_cast<float>(fields.optional_number("swiglu_alpha", 0.0, 1e3).value_or(1.702)),
                     static_cast<float>(fields.optional_number("swiglu_limit", 1e-3, 1e6).value_or(7.0))};
  set_experts(mixture, 0, std::vector<bool>(spec.layers.size(), true), spec);
  name_tensors(spec);
  return spec;
}

}  // namespace quire::model
