#include "core/speculate/heads/head_weights.h"

#include <array>
#include <string>

#include "core/speculate/problems.h"

namespace quire::speculate {
namespace {

std::string layer_name(std::uint32_t layer) { return "layers." + std::to_string(layer) + "."; }

// Requests every tensor of a head with this config. The check and the packing pass run the same code.
class Gatherer {
 public:
  Gatherer(HeadTensors& tensors, const HeadConfig& config) : tensors_(tensors), config_(config) {}

  HeadWeights gather() {
    HeadWeights weights;
    const std::uint64_t hidden = config_.hidden;
    const std::uint64_t states = config_.states_width();
    const bool third = config_.kind == HeadKind::kEagle3;
    if (config_.norm_before_fc) weights.states_norm = tensors_.vector("input_norm.weight", states);
    if (config_.fc_norm) gather_state_norms(weights);
    if (!third || config_.fuses_states()) {
      weights.fc = tensors_.weight({{"fc"}, third ? states : 2 * hidden, {hidden}});
    }
    const std::string embed = "embed_tokens";
    const bool own_embed = config_.hidden != config_.target_hidden || tensors_.has(embed + ".weight");
    if (own_embed) weights.embed = tensors_.weight({{embed}, hidden, {config_.vocab}, Biased::kNever, true});
    for (std::uint32_t layer = 0; layer < config_.num_layers; ++layer) {
      weights.layers.push_back(gather_head_layer(tensors_, config_, layer_name(layer), layer));
    }
    gather_head(weights);
    return weights;
  }

 private:
  // Named by number, or (three states) by the first published names.
  void gather_state_norms(HeadWeights& weights) {
    static constexpr std::array kFirstNames = {"aux_norm_low.weight", "aux_norm_mid.weight", "aux_norm_high.weight"};
    const std::size_t num = config_.boundaries.size();
    const bool first_names = num == kFirstNames.size() && tensors_.has(kFirstNames.front());
    for (std::size_t i = 0; i < num; ++i) {
      const std::string name = first_names ? kFirstNames[i] : "fc_norm." + std::to_string(i) + ".weight";
      weights.state_norms.push_back(tensors_.vector(name, config_.target_hidden));
    }
  }

  void gather_head(HeadWeights& weights) {
    if (config_.kind == HeadKind::kEagle) return;
    // The factor fits into the norm's weights, as logits are linear in its output.
    weights.norm = tensors_.vector("norm.weight", config_.hidden, config_.logit_scale);
    if (config_.norm_output) weights.output_norm = tensors_.vector("norm.weight", config_.hidden);
    const bool reduced = config_.draft_vocab != config_.vocab;
    const bool target_serves = !reduced && config_.hidden == config_.target_hidden;
    if (!target_serves || tensors_.has("lm_head.weight")) {
      weights.head = tensors_.weight({{"lm_head"}, config_.hidden, {config_.draft_vocab}, Biased::kNever});
    }
    weights.token_of = tensors_.token_ids(config_.draft_vocab, config_.vocab, reduced);
  }

  HeadTensors& tensors_;
  const HeadConfig& config_;
};

}  // namespace

HeadLayer gather_head_layer(HeadTensors& tensors, const HeadConfig& config, const std::string& at,
                            std::uint32_t index) {
  const std::uint64_t hidden = config.hidden;
  const std::uint64_t ffn = config.ffn;
  const std::uint64_t q = std::uint64_t{config.num_heads} * config.head_dim;
  const std::uint64_t kv = std::uint64_t{config.num_kv_heads} * config.head_dim;
  const bool wide = config.kind == HeadKind::kEagle3 && index == 0;
  const Biased attention = config.attention_bias ? Biased::kAlways : Biased::kMaybe;
  const Biased mlp = config.mlp_bias ? Biased::kAlways : Biased::kMaybe;
  const std::string input_norm = at + "input_layernorm.weight";
  HeadLayer layer;
  if (config.kind != HeadKind::kEagle || index > 0 || tensors.has(input_norm))
    layer.input_norm = tensors.vector(input_norm, hidden);
  if (wide) layer.feature_norm = tensors.vector(at + "hidden_norm.weight", hidden);
  const std::string attn = at + "self_attn.";
  layer.qkv = tensors.weight(
      {{attn + "q_proj", attn + "k_proj", attn + "v_proj"}, wide ? 2 * hidden : hidden, {q, kv, kv}, attention});
  if (tensors.has(attn + "q_norm.weight") || tensors.has(attn + "k_norm.weight")) {
    layer.q_norm = tensors.vector(attn + "q_norm.weight", config.head_dim);
    layer.k_norm = tensors.vector(attn + "k_norm.weight", config.head_dim);
  }
  layer.out = tensors.weight({{attn + "o_proj"}, q, {hidden}, attention});
  layer.post_norm = tensors.vector(at + "post_attention_layernorm.weight", hidden);
  layer.gate_up = tensors.weight({{at + "mlp.gate_proj", at + "mlp.up_proj"}, hidden, {ffn, ffn}, mlp});
  layer.down = tensors.weight({{at + "mlp.down_proj"}, ffn, {hidden}, mlp});
  return layer;
}

HeadWeights load_head_weights(backend::Ops& ops, const HeadConfig& config, const model::ModelFiles& files,
                              std::optional<backend::Format> quantize) {
  const HeadFile file(files);
  Problems problems;
  HeadTensors check(file, problems);
  Gatherer(check, config).gather();
  check.refuse_unused();
  problems.throw_if_any(file.name() + " does not fit its config.json");
  HeadTensors pack(file, problems, &ops, quantize);
  return Gatherer(pack, config).gather();
}

}  // namespace quire::speculate
