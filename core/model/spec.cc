#include "core/model/spec.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/float_bits.h"
#include "core/model/rope/rope.h"
#include "core/model/rope/rope_config.h"
#include "core/model/rope/rope_math.h"

namespace quire::model {
namespace {

std::string windows_text(const std::vector<std::uint32_t>& windows) {
  std::string text;
  for (std::size_t i = 0; i < windows.size();) {
    const auto end = std::find_if(windows.begin() + i, windows.end(), [&](std::uint32_t w) { return w != windows[i]; });
    const std::size_t run = static_cast<std::size_t>(end - windows.begin()) - i;
    if (!text.empty()) text += ",";
    text += std::to_string(windows[i]) + "*" + std::to_string(run);
    i += run;
  }
  return text;
}

// "12", or "8*2,16*1" if layers differ.
template <typename Value>
std::string by_layer(const std::vector<LayerSpec>& layers, const Value& value) {
  std::vector<std::uint32_t> values;
  for (const LayerSpec& layer : layers) values.push_back(value(layer));
  if (values.empty()) return "0";
  const bool same = std::ranges::all_of(values, [&](std::uint32_t v) { return v == values.front(); });
  return same ? std::to_string(values.front()) : windows_text(values);
}

const char* name_of(Placement placement) {
  constexpr const char* kNames[] = {"pre", "post", "sandwich", "parallel", "parallel_norms", "post_sum"};
  return kNames[static_cast<int>(placement)];
}
const char* name_of(backend::Activation activation) {
  constexpr const char* kNames[] = {"silu", "gelu_tanh", "relu2", "gelu", "relu", "xielu"};
  return kNames[static_cast<int>(activation)];
}
const char* name_of(HeadNormSpec::Over over) {
  constexpr const char* kNames[] = {"head", "each_head", "row"};
  return kNames[static_cast<int>(over)];
}

// "rms", "layer+bias".
std::string name_of(const NormSpec& norm) {
  return std::string(norm.kind == backend::NormKind::kRms ? "rms" : "layer") + (norm.bias ? "+bias" : "") +
         (norm.weightless ? "+ones" : "");
}
std::string text_of(const NormSpec& norm) { return name_of(norm) + ":" + shortest(norm.eps); }
std::string text_of(const std::optional<HeadNormSpec>& heads) {
  return heads ? text_of(heads->norm) + ":" + name_of(heads->over) : "-";
}

const char* name_of(backend::RouteScore score) {
  constexpr const char* kNames[] = {"softmax", "sigmoid", "logit", "sparsemixer"};
  return kNames[static_cast<int>(score)];
}

// Norms of q and k that are not both the layer's own, or both absent.
std::string head_norms_of(const LayerSpec& layer) {
  const std::optional<HeadNormSpec>& q = layer.attention.q_norm;
  const std::optional<HeadNormSpec>& k = layer.attention.k_norm;
  if (q == k && (!q || q->norm == layer.norm)) return "";
  return " q_norm=" + text_of(q) + " k_norm=" + text_of(k);
}

std::string text_of(const backend::RouteRule& rule) {
  std::string text = std::to_string(rule.top_k) + "of" + std::to_string(rule.num_experts) + ":" + name_of(rule.score);
  if (rule.num_groups != 1) {
    text += ":groups=" + std::to_string(rule.top_groups) + "of" + std::to_string(rule.num_groups);
  }
  if (rule.normed) text += ":normed=" + shortest(rule.norm_eps) + ":" + shortest(rule.norm_least);
  if (rule.groups_by_highest) text += ":by_highest";
  if (rule.scale != 1.0f) text += ":scale=" + shortest(rule.scale);
  if (rule.margin != 0.0f) text += ":margin=" + shortest(rule.margin);
  return text;
}

std::string text_of(const MixtureSpec& mixture) {
  std::string text = text_of(mixture.rule) + ":F=" + std::to_string(mixture.expert.width);
  text += std::string(":") + name_of(mixture.expert.activation);
  if (!mixture.expert.gated) text += ":ungated";
  if (mixture.expert.bias) text += ":bias";
  if (mixture.expert.clamp) {
    text += ":clamp=" + shortest(mixture.expert.clamp->alpha) + ":" + shortest(mixture.expert.clamp->limit);
  }
  if (mixture.router_bias) text += ":router_bias";
  if (mixture.choice_bias) text += ":choice_bias";
  if (mixture.shared_gate) text += ":shared_gate";
  if (mixture.router_norm) text += ":router_norm";
  if (mixture.expert_scales) text += ":scales";
  if (mixture.own_norms) text += ":own_norms";
  return text;
}

std::string text_of(const LatentSpec& latent) {
  std::string text;
  for (const std::uint32_t number :
       {latent.rank, latent.rope_dim, latent.nope_dim, latent.value_dim, latent.query_rank}) {
    text += std::to_string(number) + ":";
  }
  return text + shortest(latent.norm_eps);
}

std::string flags_of(const LayerSpec& layer) {
  std::string text;
  if (layer.attention.qkv_bias) text += " qkv_bias";
  if (layer.attention.out_bias) text += " out_bias";
  if (layer.mlp.bias) text += " mlp_bias";
  if (layer.attention.q_norm) text += " qk_norm";
  return text;
}

// Traits of a layer that Llama does not have; "": none.
std::string traits_of(const LayerSpec& layer) {
  std::string text;
  if (layer.placement != Placement::kPre) text += std::string(" block=") + name_of(layer.placement);
  if (layer.norm.kind != backend::NormKind::kRms || layer.norm.bias || layer.norm.weightless) {
    text += " norm=" + name_of(layer.norm);
  }
  if (layer.inner_norms) text += " inner_norms";
  if (layer.mlp.activation != backend::Activation::kSilu) text += std::string(" act=") + name_of(layer.mlp.activation);
  if (!layer.mlp.gated) text += " ungated";
  if (layer.mlp.cutoff) text += " cutoff=" + shortest(*layer.mlp.cutoff);
  if (layer.experts) text += " experts=" + text_of(*layer.experts);
  const AttentionLayer& attention = layer.attention;
  const auto usual = static_cast<float>(1.0 / std::sqrt(static_cast<double>(attention.head_dim)));
  if (attention.scale != usual) text += " scale=" + shortest(attention.scale);
  if (attention.softcap != 0.0f) text += " softcap=" + shortest(attention.softcap);
  if (attention.q_norm && attention.q_norm->over != HeadNormSpec::Over::kHead) {
    text += std::string(" qk_norm_over=") + name_of(attention.q_norm->over);
  }
  text += head_norms_of(layer);
  if (attention.norms_after_rope) text += " norms_after_rope";
  if (attention.v_norm) text += " v_norm=" + text_of(attention.v_norm);
  if (attention.v_is_k) text += " v=k";
  if (attention.kv_source) text += " kv_of=" + std::to_string(*attention.kv_source);
  if (attention.interleaved) text += " interleaved";
  if (attention.alibi) text += " alibi=" + shortest(attention.alibi->max) + (attention.alibi->in_bf16 ? ":bf16" : "");
  if (attention.sinks) text += " sinks";
  if (attention.kv_scales != KvScales{}) {
    text += " kv_scales=" + shortest(attention.kv_scales.k) + ":" + shortest(attention.kv_scales.v);
  }
  if (attention.latent) text += " latent=" + text_of(*attention.latent);
  if (attention.qkv_clip != 0.0f) {
    text += " qkv_clip=" + shortest(attention.qkv_clip) + (attention.clips_normed ? ":normed" : "");
  }
  if (attention.q_scale) {
    text += " q_scale=" + shortest(attention.q_scale->beta) + ":" + std::to_string(attention.q_scale->original);
  }
  if (layer.residual_scale != 1.0f) text += " residual=" + shortest(layer.residual_scale);
  if (layer.scaled) text += " scaled";
  return text;
}

// Layers that differ from the layer before in more than sizes, window and table: " layer2(eps=1e-05 ungated)".
std::string changes_of(const std::vector<LayerSpec>& layers) {
  const auto all = [](const LayerSpec& layer) {
    return "eps=" + shortest(layer.norm.eps) + flags_of(layer) + traits_of(layer);
  };
  std::string text;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    if (all(layers[i]) != all(layers[i - 1])) text += " layer" + std::to_string(i) + "(" + all(layers[i]) + ")";
  }
  return text;
}

std::string traits_of(const ModelSpec& spec) {
  const LayerSpec& first = spec.layers.front();
  std::string text = traits_of(first) + changes_of(spec.layers);
  if (spec.final_norm != first.norm) text += " final_norm=" + (spec.final_norm ? text_of(*spec.final_norm) : "none");
  if (spec.projects_embedding()) text += " W=" + std::to_string(spec.embedding);
  if (spec.embedding_norm) text += " embed_norm=" + text_of(*spec.embedding_norm);
  if (spec.per_layer) {
    text += " per_layer=" + std::to_string(spec.per_layer->width) + ":" + std::to_string(spec.per_layer->vocab);
  }
  if (spec.altup) {
    text += " altup=" + std::to_string(spec.altup->streams) + " laurel=" + std::to_string(spec.altup->laurel_rank) +
            (spec.altup->scales ? "" : " unscaled");
  }
  if (spec.norm_offset != 0.0f) text += " norm_offset=" + shortest(spec.norm_offset);
  if (spec.embedding_scale != 1.0f) text += " embed=" + shortest(spec.embedding_scale);
  if (spec.position_embedding) text += " positions=embedded:" + std::to_string(spec.position_embedding->offset);
  if (spec.head_bias) text += " head_bias";
  if (spec.logit_scale != 1.0f) text += " logits=" + shortest(spec.logit_scale);
  if (spec.logit_softcap != 0.0f) text += " logit_softcap=" + shortest(spec.logit_softcap);
  return text;
}

// The table of each layer, if there are several or a layer has none: " ropes=1*5,0*1", "-" for none.
std::string tables_of(const ModelSpec& spec) {
  const auto table = [](const LayerSpec& layer) { return layer.attention.rope; };
  if (std::ranges::all_of(spec.layers, [&](const LayerSpec& layer) { return table(layer) == 0; })) return "";
  std::string text = " ropes=";
  for (const LayerSpec& layer : spec.layers) {
    text += table(layer) == AttentionLayer::kNoRope ? "-" : std::to_string(table(layer));
  }
  return text;
}

}  // namespace

std::vector<float> AlibiSpec::slopes(std::uint32_t num_heads) const {
  const std::uint32_t power = std::bit_floor(num_heads);
  const auto slope = [&](std::uint32_t i, std::uint32_t of) {
    const auto exact = static_cast<float>(rope_math::pow(2.0, -max * i / of));
    return in_bf16 ? f32_of_bf16(bf16_of_f32(exact)) : exact;
  };
  std::vector<float> slopes;
  for (std::uint32_t i = 1; i <= power; ++i) slopes.push_back(slope(i, power));
  for (std::uint32_t i = 1; slopes.size() < num_heads; i += 2) slopes.push_back(slope(i, 2 * power));
  return slopes;
}

const MixtureSpec* ModelSpec::mixture() const {
  const auto found = std::ranges::find_if(layers, [](const LayerSpec& layer) { return layer.experts.has_value(); });
  return found == layers.end() ? nullptr : &*found->experts;
}

std::vector<std::uint32_t> ModelSpec::windows() const {
  std::vector<std::uint32_t> windows;
  for (const LayerSpec& layer : layers) windows.push_back(layer.attention.window);
  return windows;
}

void ModelSpec::serve_up_to(std::uint32_t positions) {
  for (RopeConfig& rope : ropes) {
    if (rope.kind == RopeKind::kLongRope) rope.is_long = positions > rope.original_positions;
  }
}

std::uint32_t ModelSpec::max_model_len() const {
  const auto biased = [](const LayerSpec& layer) { return layer.attention.alibi.has_value(); };
  double most = position_embedding || std::ranges::any_of(layers, biased) ? max_positions : kMaxRopePositions;
  for (const RopeConfig& rope : ropes) {
    double positions = max_positions;
    if (rope.kind == RopeKind::kLinear) positions *= rope.factor;
    if (rope.kind == RopeKind::kYarn) positions = std::max(positions, rope.original_positions * rope.factor);
    if (rope.kind == RopeKind::kLongRope && !rope.is_long)
      positions = std::min<double>(positions, rope.original_positions);
    most = std::min(most, positions);
  }
  return static_cast<std::uint32_t>(std::floor(most));
}

std::uint32_t ModelSpec::kv_layer(std::uint32_t layer) const {
  const std::uint32_t source = layers[layer].attention.kv_source.value_or(layer);
  const auto stores = [](const LayerSpec& one) { return !one.attention.kv_source; };
  return static_cast<std::uint32_t>(std::count_if(layers.begin(), layers.begin() + source, stores));
}

void ModelSpec::copy_kv_heads(std::uint32_t num_ranks) {
  for (LayerSpec& layer : layers) {
    AttentionLayer& attention = layer.attention;
    const bool norms_row = attention.k_norm && attention.k_norm->over == HeadNormSpec::Over::kRow;
    if (attention.num_kv_heads >= num_ranks || norms_row || attention.latent) continue;
    if (num_ranks % attention.num_kv_heads != 0 || attention.num_heads % num_ranks != 0) continue;
    attention.kv_copies = num_ranks / attention.num_kv_heads;
    attention.num_kv_heads = num_ranks;
  }
}

backend::KvShape ModelSpec::kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const {
  backend::KvShape shape;
  std::uint32_t place = 0;
  for (const LayerSpec& layer : layers) {
    if (layer.attention.kv_source) continue;
    const std::uint32_t latent = layer.attention.latent ? layer.attention.latent->rank : 0;
    shape.layers.push_back({layer.attention.num_kv_heads, layer.attention.head_dim, 0, place++, latent});
  }
  shape.block_tokens = block_tokens;
  shape.num_blocks = num_blocks;
  shape.type = type;
  return shape;
}

std::string ModelSpec::describe() const {
  const LayerSpec& first = layers.front();
  std::string tables;
  for (const RopeConfig& rope : ropes) tables += (tables.empty() ? "" : "+") + model::describe(rope);
  return model_type + " E=" + std::to_string(hidden) +
         " F=" + by_layer(layers, [](const LayerSpec& layer) { return layer.mlp.width; }) +
         " L=" + std::to_string(num_layers()) +
         " H=" + by_layer(layers, [](const LayerSpec& layer) { return layer.attention.num_heads; }) +
         " G=" + by_layer(layers, [](const LayerSpec& layer) { return layer.attention.num_kv_heads; }) +
         " D=" + by_layer(layers, [](const LayerSpec& layer) { return layer.attention.head_dim; }) +
         " V=" + std::to_string(vocab) + " eps=" + shortest(first.norm.eps) + " window=" + windows_text(windows()) +
         (tied_head ? " tied" : "") + flags_of(first) + traits_of(*this) +
         " rope=" + (tables.empty() ? "none" : tables) + tables_of(*this);
}

}  // namespace quire::model
