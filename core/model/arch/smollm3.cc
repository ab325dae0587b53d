// SmolLM3: Llama with layers without positions.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

namespace {

// 1: the layer has rope. By default every fourth has none.
std::vector<bool> read_ropes(const JsonFields& fields, std::size_t num_layers) {
  const std::vector<std::uint64_t> given = fields.uint_or_list("no_rope_layers", 1);
  if (given.empty()) {
    const auto interval =
        static_cast<std::uint32_t>(fields.optional_uint("no_rope_layer_interval", 1, 4096).value_or(4));
    return sliding_pattern(num_layers, interval);
  }
  if (given.size() != num_layers) {
    fields.refuse("no_rope_layers", "has " + std::to_string(given.size()) +
                                        " entries; expected num_hidden_layers = " + std::to_string(num_layers));
  }
  return {given.begin(), given.end()};
}

}  // namespace

ModelSpec read_smollm3(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "smollm3", .positions = 32768, .kv_heads = 4, .tied = true});
  set_rope(fields, {.theta = 2e6}, spec);
  const std::vector<bool> turns = read_ropes(fields, spec.layers.size());
  const std::uint32_t window = read_flag(fields, "use_sliding_window", false) ? read_window(fields, 0) : 0;
  std::vector<bool> sliding;
  for (const bool rope : turns) sliding.push_back(window != 0 && !rope);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), window, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
    AttentionLayer& attention = spec.layers[layer].attention;
    if (!turns[layer]) attention.rope = AttentionLayer::kNoRope;
    attention.qkv_bias = attention.out_bias = biased;
    spec.layers[layer].mlp.bias = read_flag(fields, "mlp_bias", false);
  }
  return spec;
}

}  // namespace quire::model
