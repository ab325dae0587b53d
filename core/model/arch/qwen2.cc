// Qwen2: Llama with biases of q, k and v; Qwen3: with norms of the heads of q and k. Layers may slide. Of Qwen2-VL,
// 2.5-VL and 3-VL the text part: as Qwen2 and Qwen3; sections of their RoPE are for images, and equal for text.
#include <algorithm>

#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

namespace {

// max_window_layers: the first layers, which are full. A list of layer_types goes first.
void read_qwen_windows(const JsonFields& fields, std::uint64_t usual, ModelSpec& spec) {
  const bool used = read_flag(fields, "use_sliding_window", false);
  const std::uint32_t window = used ? read_window(fields, 4096) : 0;
  const std::uint64_t full = fields.optional_uint("max_window_layers", 0, (1u << 31) - 1).value_or(usual);
  std::vector<bool> sliding(spec.layers.size(), window != 0);
  for (std::size_t layer = 0; layer < std::min<std::uint64_t>(full, sliding.size()); ++layer) sliding[layer] = false;
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), window, spec);
}

ModelSpec read_of_images(const JsonFields& fields, std::string_view model_type) {
  ModelSpec spec = read_model(
      fields, {.model_type = model_type, .positions = 32768, .kv_heads = 8, .takes_head_dim = false, .eps = 1e-5});
  set_rope(fields, {.theta = 1e6, .sections = true}, spec);
  read_qwen_windows(fields, 80, spec);
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = true;
  return spec;
}

ModelSpec read_normed(const JsonFields& fields, const FamilyDefaults& defaults, const RopeDefaults& rope) {
  ModelSpec spec = read_model(fields, defaults);
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  set_rope(fields, rope, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  return spec;
}

}  // namespace

ModelSpec read_qwen2(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "qwen2", .positions = 32768});
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  set_rope(fields, {}, spec);
  read_qwen_windows(fields, 28, spec);
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = true;
  return spec;
}

ModelSpec read_qwen2_vl(const JsonFields& fields) { return read_of_images(fields, "qwen2_vl_text"); }
ModelSpec read_qwen2_5_vl(const JsonFields& fields) { return read_of_images(fields, "qwen2_5_vl_text"); }

ModelSpec read_qwen3(const JsonFields& fields) {
  ModelSpec spec = read_normed(fields, {.model_type = "qwen3", .positions = 32768, .head_dim = 128}, {});
  read_qwen_windows(fields, 28, spec);
  return spec;
}

ModelSpec read_qwen3_vl(const JsonFields& fields) {
  return read_normed(fields, {.model_type = "qwen3_vl_text", .positions = 128000, .kv_heads = 32, .head_dim = 128},
                     {.theta = 5e5, .sections = true});
}

}  // namespace quire::model
