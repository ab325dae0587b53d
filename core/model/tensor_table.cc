#include "core/model/tensor_table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/model/attention_tensors.h"

namespace quire::model {
namespace {

using Kind = TensorEntry::Kind;

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= name.size(); ++at) {
    if (matches(rest, name.substr(at))) return true;
  }
  return false;
}

// The name with the number in place of its "{}".
std::string numbered(std::string name, std::uint32_t number) {
  return name.replace(name.find("{}"), 2, std::to_string(number));
}

// Builds the table of one model.
class Builder {
 public:
  explicit Builder(const ModelSpec& spec) : spec_(spec), names_(spec.names) {}

  TensorTable build() {
    const std::uint64_t hidden = spec_.hidden;
    matrix(Role::kEmbedding, {part(names_.prefix + names_.embedding, {spec_.vocab, spec_.embedding})}, false);
    if (spec_.projects_embedding()) {
      matrix(Role::kEmbeddingIn, {part(names_.prefix + names_.embedding_in, {hidden, spec_.embedding})}, false);
      matrix(Role::kEmbeddingOut, {part(names_.prefix + names_.embedding_out, {spec_.embedding, hidden})}, false);
    }
    if (spec_.position_embedding) {
      const std::uint64_t positions = std::uint64_t{spec_.max_positions} + spec_.position_embedding->offset;
      matrix(Role::kPositionEmbedding, {part(names_.prefix + names_.positions, {positions, hidden})}, false);
    }
    if (spec_.embedding_norm) {
      norm(Role::kEmbeddingNorm, names_.prefix + names_.embedding_norm, *spec_.embedding_norm, hidden);
    }
    if (spec_.per_layer) add_per_layer_embedding();
    if (spec_.altup) add_streams();
    for (layer_ = 0; layer_ < spec_.num_layers(); ++layer_) add_layer(spec_.layers[layer_]);
    layer_ = TensorEntry::kTop;
    if (spec_.final_norm) norm(Role::kFinalNorm, names_.prefix + names_.final_norm, *spec_.final_norm, hidden);
    if (!spec_.tied_head) matrix(Role::kHead, {part(names_.head, {spec_.vocab, spec_.embedding})}, spec_.head_bias);
    table_.skipped.insert(table_.skipped.end(), names_.skipped.begin(), names_.skipped.end());
    table_.skipped.emplace_back("*rotary_emb.inv_freq");
    table_.skipped.emplace_back("medusa_head.*");
    if (spec_.tied_head) table_.skipped.push_back(names_.head + ".weight");
    return std::move(table_);
  }

 private:
  static TensorPart part(const std::string& name, std::vector<std::uint64_t> shape) {
    return weight_part(name, std::move(shape));
  }
  static TensorPart bias_of(TensorPart weight) {
    weight.name.replace(weight.name.size() - std::string_view("weight").size(), std::string::npos, "bias");
    return weight;
  }
  std::string in_layer(const std::string& name) const { return name_in_layer(names_, layer_, name); }

  TensorEntry& add(Role role, Kind kind, std::vector<TensorPart> parts) {
    TensorEntry& entry = table_.entries.emplace_back();
    entry.role = role;
    entry.layer = layer_;
    entry.kind = kind;
    entry.parts = std::move(parts);
    return entry;
  }
  void matrix(Role role, std::vector<TensorPart> parts, bool biased) {
    TensorEntry& entry = add(role, Kind::kMatrix, std::move(parts));
    if (biased) {
      for (const TensorPart& weight : entry.parts) {
        entry.biases.push_back(bias_of(weight));
        entry.biases.back().shape.resize(1);
      }
    }
    if (!names_.transposed || layer_ == TensorEntry::kTop) return;
    for (TensorPart& weight : entry.parts) {
      weight.transposed = true;
      std::swap(weight.shape.front(), weight.shape.back());
    }
  }
  void norm(Role role, const std::string& name, const NormSpec& norm, std::uint64_t size) {
    if (norm.weightless) return;
    add(role, Kind::kVector, {part(name, {size})}).offset = spec_.norm_offset;
    if (norm.bias) add(role, Kind::kBias, {{.name = name + ".bias", .shape = {size}}});
  }

  void add_layer(const LayerSpec& layer) {
    if (layer.norms_input()) norm(Role::kInputNorm, in_layer(names_.input_norm), layer.norm, spec_.hidden);
    add_attention(layer.attention);
    if (layer.inner_norms) {
      norm(Role::kAttentionInnerNorm, in_layer(names_.attention_inner_norm), layer.norm, layer.attention.q_width());
    }
    const bool norms_after = layer.norms_output() || layer.norms_sum();
    if (norms_after) norm(Role::kAttentionNorm, in_layer(names_.attention_norm), layer.norm, spec_.hidden);
    if (layer.norms_mlp_input()) norm(Role::kMlpNorm, in_layer(names_.mlp_norm), layer.norm, spec_.hidden);
    if (layer.has_mlp()) add_mlp(layer.mlp, mlp_names(layer));
    if (layer.experts) add_experts(*layer.experts, layer);
    if (layer.inner_norms) {
      norm(Role::kMlpInnerNorm, in_layer(names_.mlp_inner_norm), layer.norm, layer.mlp.width);
    }
    if (norms_after) norm(Role::kMlpOutNorm, in_layer(names_.mlp_out_norm), layer.norm, spec_.hidden);
    if (spec_.per_layer) add_per_layer(layer.norm);
    if (spec_.altup) add_altup(layer.norm);
    if (layer.scaled) add(Role::kLayerScale, Kind::kNumber, {{.name = in_layer(names_.scale), .shape = {1}}});
  }

  void add_per_layer_embedding() {
    const std::uint64_t width = std::uint64_t{spec_.per_layer->width} * spec_.num_layers();
    matrix(Role::kPerLayerEmbedding,
           {part(names_.prefix + names_.per_layer_embedding, {spec_.per_layer->vocab, width})}, false);
    matrix(Role::kPerLayerProjection, {part(names_.prefix + names_.per_layer_projection, {width, spec_.hidden})},
           false);
    norm(Role::kPerLayerProjectionNorm, names_.prefix + names_.per_layer_projection_norm, *spec_.final_norm,
         spec_.per_layer->width);
  }
  void add_per_layer(const NormSpec& out_norm) {
    const std::uint64_t width = spec_.per_layer->width;
    matrix(Role::kPerLayerGate, {part(in_layer(names_.per_layer_gate), {width, spec_.hidden})}, false);
    matrix(Role::kPerLayerOut, {part(in_layer(names_.per_layer_out), {spec_.hidden, width})}, false);
    norm(Role::kPerLayerNorm, in_layer(names_.per_layer_norm), out_norm, spec_.hidden);
  }

  void add_streams() {
    for (const auto& [role, name] :
         {std::pair{Role::kStreamIn, &names_.stream_in}, {Role::kStreamOut, &names_.stream_out}}) {
      for (layer_ = 1; layer_ < spec_.altup->streams; ++layer_) {
        const std::string number = std::to_string(layer_ - 1);
        matrix(role, {part(names_.prefix + *name + "." + number, {spec_.hidden, spec_.hidden})}, false);
      }
    }
    layer_ = TensorEntry::kTop;
  }
  void add_altup(const NormSpec& norm_spec) {
    const std::uint64_t hidden = spec_.hidden;
    const std::uint64_t streams = spec_.altup->streams;
    const std::uint64_t rank = spec_.altup->laurel_rank;
    norm(Role::kRouterNorm, in_layer(names_.router_norm), norm_spec, hidden);
    matrix(Role::kRouter, {part(in_layer(names_.router), {streams, hidden})}, false);
    matrix(Role::kPrediction, {part(in_layer(names_.prediction), {streams * streams, streams})}, false);
    matrix(Role::kCorrection, {part(in_layer(names_.correction), {streams, streams})}, false);
    matrix(Role::kLaurelLeft, {part(in_layer(names_.laurel_left), {rank, hidden})}, false);
    matrix(Role::kLaurelRight, {part(in_layer(names_.laurel_right), {hidden, rank})}, false);
    norm(Role::kLaurelNorm, in_layer(names_.laurel_norm), norm_spec, hidden);
    const std::string scale = in_layer(names_.correction_scale);
    if (spec_.altup->scales) {
      add(Role::kCorrectionScale, Kind::kVector, {{.name = scale, .shape = {hidden}}});
    } else {
      table_.skipped.push_back(scale);
    }
  }

  void add_attention(const AttentionLayer& attention) {
    matrix(Role::kQkv, AttentionTensors(spec_, layer_).first(), attention.qkv_bias);
    if (attention.latent) add_latent(attention);
    if (attention.kv_source) {  // a checkpoint may have them all the same
      for (const std::string& unused : {names_.k, names_.v, names_.k_norm}) {
        table_.skipped.push_back(in_layer(unused) + ".*");
      }
    }
    head_norm(Role::kQNorm, names_.q_norm, attention.q_norm, attention.num_heads, attention);
    head_norm(Role::kKNorm, names_.k_norm, attention.k_norm, attention.num_kv_heads / attention.kv_copies, attention);
    if (attention.sinks) {
      add(Role::kSinks, Kind::kVector, {{.name = in_layer(names_.sinks), .shape = {attention.num_heads}}});
    }
    matrix(Role::kOut, {part(in_layer(names_.out), {spec_.hidden, attention.out_width()})}, attention.out_bias);
  }

  void add_latent(const AttentionLayer& attention) {
    const LatentSpec& latent = *attention.latent;
    if (latent.query_rank != 0) {
      matrix(Role::kLatentQuery, AttentionTensors(spec_, layer_).second_query(), false);
      add(Role::kLatentQueryNorm, Kind::kVector, {part(in_layer(names_.q_low_norm), {latent.query_rank})});
    }
    add(Role::kLatentNorm, Kind::kVector, {part(in_layer(names_.kv_low_norm), {latent.rank})});
    for (std::uint32_t head = 0; head < attention.num_heads; ++head) {
      add(Role::kLatentKey, Kind::kMatrix, {AttentionTensors(spec_, layer_).key(head)}).expert = head;
      add(Role::kLatentValue, Kind::kMatrix, {AttentionTensors(spec_, layer_).value(head)}).expert = head;
    }
  }

  void head_norm(Role role, const std::string& name, const std::optional<HeadNormSpec>& heads, std::uint32_t num_heads,
                 const AttentionLayer& attention) {
    if (!heads || heads->norm.weightless) return;
    std::vector<TensorPart> parts = head_norm_parts(name, heads->over, num_heads, attention.head_dim);
    if (attention.interleaved && attention.rope != AttentionLayer::kNoRope) {
      for (TensorPart& values : parts) reorder_pairs(spec_, attention, values);
    }
    if (role == Role::kKNorm && heads->over == HeadNormSpec::Over::kEachHead) {
      for (TensorPart& values : parts) copy_kv_heads(attention, values);
    }
    std::vector<TensorPart> biases;
    for (const TensorPart& scale : parts) biases.push_back(bias_of(scale));
    add(role, Kind::kVector, std::move(parts)).offset = spec_.norm_offset;
    if (heads->norm.bias) add(role, Kind::kBias, std::move(biases));
  }

  std::vector<TensorPart> head_norm_parts(const std::string& name, HeadNormSpec::Over over, std::uint32_t num_heads,
                                          std::uint64_t size) const {
    if (over == HeadNormSpec::Over::kHead) return {part(in_layer(name), {size})};
    if (over == HeadNormSpec::Over::kRow) return {part(in_layer(name), {num_heads * size})};
    if (name.find("{}") == std::string::npos) return {part(in_layer(name), {num_heads, size})};
    std::vector<TensorPart> parts;
    for (std::uint32_t head = 0; head < num_heads; ++head) {
      parts.push_back(part(in_layer(numbered(name, head)), {size}));
    }
    return parts;
  }

  // Names of an MLP's matrices.
  struct MlpNames {
    const std::string &gate, &up, &gate_up, &down;
  };
  MlpNames mlp_names(const LayerSpec& layer) const {
    const ExpertNames& experts = names_.experts;
    if (!layer.experts) return {names_.gate, names_.up, names_.gate_up, names_.down};
    return {experts.shared_gate, experts.shared_up, experts.shared_gate_up, experts.shared_down};
  }

  void add_mlp(const FeedForward& mlp, const MlpNames& names) {
    const std::uint64_t width = mlp.width;
    std::vector<TensorPart> parts;
    if (!names.gate_up.empty()) {
      for (const std::uint64_t first : {std::uint64_t{0}, width}) {
        parts.push_back(part(in_layer(names.gate_up), {2 * width, spec_.hidden}));
        parts.back().first_row = first;
        parts.back().rows = width;
      }
    } else {
      if (mlp.gated) parts.push_back(part(in_layer(names.gate), {width, spec_.hidden}));
      parts.push_back(part(in_layer(names.up), {width, spec_.hidden}));
    }
    matrix(Role::kGateUp, std::move(parts), mlp.bias);
    if (mlp.activation == backend::Activation::kXielu) add_xielu();
    matrix(Role::kDown, {part(in_layer(names.down), {spec_.hidden, width})}, mlp.bias);
  }

  void add_experts(const MixtureSpec& mixture, const LayerSpec& layer) {
    const ExpertNames& names = names_.experts;
    const std::uint64_t count = mixture.rule.num_experts;
    matrix(Role::kExpertRouter, {part(in_layer(names.router), {count, spec_.hidden})}, mixture.router_bias);
    if (mixture.choice_bias) {
      const std::vector<std::uint64_t> shape =
          names.choice_bias_shape.empty() ? std::vector{count} : names.choice_bias_shape;
      add(Role::kExpertChoiceBias, Kind::kVector, {{.name = in_layer(names.choice_bias), .shape = shape}});
    }
    for (std::uint32_t expert = 0; expert < count; ++expert) {
      if (names.layout == ExpertNames::Layout::kSeparate) {
        add_expert(mixture.expert, expert);
      } else {
        cut_expert(mixture, expert);
      }
    }
    add_norms_of_experts(mixture, layer);
    if (mixture.shared_gate) {
      matrix(Role::kSharedExpertGate, {part(in_layer(names.shared_weight), {1, spec_.hidden})}, false);
    }
  }

  void add_norms_of_experts(const MixtureSpec& mixture, const LayerSpec& layer) {
    const ExpertNames& names = names_.experts;
    if (mixture.router_norm) {
      add(Role::kExpertRouterNorm, Kind::kVector, {{.name = in_layer(names.router_norm), .shape = {spec_.hidden}}});
      table_.entries.back().factor = 1.0f / std::sqrt(static_cast<float>(spec_.hidden));
    }
    if (mixture.expert_scales) {
      add(Role::kExpertScales, Kind::kVector, {{.name = in_layer(names.scales), .shape = {mixture.rule.num_experts}}});
    }
    if (!mixture.own_norms) return;
    norm(Role::kExpertsNorm, in_layer(names.norm), layer.norm, spec_.hidden);
    norm(Role::kExpertsOutNorm, in_layer(names.out_norm), layer.norm, spec_.hidden);
    norm(Role::kSharedExpertNorm, in_layer(names.shared_norm), layer.norm, spec_.hidden);
  }

  // An expert with tensors of its own.
  void add_expert(const FeedForward& mlp, std::uint32_t expert) {
    const auto of_expert = [&](const std::string& name, std::vector<std::uint64_t> shape) {
      return part(in_layer(numbered(name, expert)), std::move(shape));
    };
    std::vector<TensorPart> parts;
    if (mlp.gated) parts.push_back(of_expert(names_.experts.gate, {mlp.width, spec_.hidden}));
    parts.push_back(of_expert(names_.experts.up, {mlp.width, spec_.hidden}));
    matrix(Role::kExpertGateUp, std::move(parts), mlp.bias);
    table_.entries.back().expert = expert;
    matrix(Role::kExpertDown, {of_expert(names_.experts.down, {spec_.hidden, mlp.width})}, mlp.bias);
    table_.entries.back().expert = expert;
  }

  // An expert whose matrices are parts of tensors of all experts.
  void cut_expert(const MixtureSpec& mixture, std::uint32_t expert) {
    const ExpertNames& names = names_.experts;
    const std::uint64_t width = mixture.expert.width;
    std::vector<TensorPart> parts;
    if (names.all_gate.empty()) {
      parts = cut_gate_up(mixture, expert);
    } else {
      if (mixture.expert.gated) parts.push_back(cut(names.all_gate, mixture, expert, width, spec_.hidden));
      parts.push_back(cut(names.all_up, mixture, expert, width, spec_.hidden));
    }
    add_cut(Role::kExpertGateUp, std::move(parts), mixture.expert.bias, expert);
    add_cut(Role::kExpertDown, {cut(names.all_down, mixture, expert, spec_.hidden, width)}, mixture.expert.bias,
            expert);
  }
  std::vector<TensorPart> cut_gate_up(const MixtureSpec& mixture, std::uint32_t expert) const {
    const ExpertNames& names = names_.experts;
    const std::uint64_t width = mixture.expert.width;
    const std::uint64_t num_up = mixture.expert.gated ? 2 : 1;
    std::vector<TensorPart> parts;
    for (std::uint64_t i = 0; i < num_up; ++i) {
      TensorPart& rows = parts.emplace_back(cut(names.all_gate_up, mixture, expert, num_up * width, spec_.hidden));
      rows.first_row = names.alternating ? i : i * width;
      rows.rows = width;
      if (!names.alternating) continue;
      rows.run = 1;
      rows.stride = num_up;
    }
    return parts;
  }
  TensorPart cut(const std::string& name, const MixtureSpec& mixture, std::uint32_t expert, std::uint64_t rows,
                 std::uint64_t inputs) const {
    TensorPart part{.name = in_layer(name), .shape = {mixture.rule.num_experts, rows, inputs}};
    part.transposed = names_.experts.layout == ExpertNames::Layout::kTransposed;
    if (part.transposed) std::swap(part.shape[1], part.shape[2]);
    part.matrix = expert;
    return part;
  }
  void add_cut(Role role, std::vector<TensorPart> parts, bool biased, std::uint32_t expert) {
    TensorEntry& entry = add(role, Kind::kMatrix, std::move(parts));
    entry.expert = expert;
    for (std::size_t i = 0; biased && i < entry.parts.size(); ++i) {
      TensorPart bias = entry.parts[i];
      if (bias.name.ends_with(".weight")) {
        bias = bias_of(std::move(bias));
      } else {
        bias.name += "_bias";
      }
      bias.shape = {bias.shape.front(), bias.all_rows()};
      bias.transposed = false;
      entry.biases.push_back(std::move(bias));
    }
  }

  void add_xielu() {
    const auto number = [&](Role role, const char* name, std::vector<std::uint64_t> shape) {
      add(role, Kind::kNumber, {{.name = in_layer(names_.xielu) + "." + name, .shape = std::move(shape)}});
    };
    number(Role::kXieluPositive, "alpha_p", {1});
    number(Role::kXieluNegative, "alpha_n", {1});
    number(Role::kXieluLinear, "beta", {});
    number(Role::kXieluMost, "eps", {});
  }

  const ModelSpec& spec_;
  const TensorNames& names_;
  std::uint32_t layer_ = TensorEntry::kTop;
  TensorTable table_;
};

}  // namespace

bool TensorTable::skips(std::string_view name) const {
  return std::ranges::any_of(skipped, [&](const std::string& pattern) { return matches(pattern, name); });
}

std::vector<TensorPart> TensorTable::tensors() const {
  std::vector<TensorPart> out;
  std::set<std::string_view> seen;
  const auto add = [&](const TensorPart& part, bool is_matrix) {
    if (seen.insert(part.name).second) out.push_back({.name = part.name, .shape = part.shape, .is_matrix = is_matrix});
  };
  for (const TensorEntry& entry : entries) {
    for (std::size_t i = 0; i < entry.parts.size(); ++i) {
      add(entry.parts[i], entry.kind == Kind::kMatrix);
      if (!entry.biases.empty()) add(entry.biases[i], false);
    }
  }
  return out;
}

bool is_router(Role role) {
  return role == Role::kRouter || role == Role::kPrediction || role == Role::kCorrection ||
         role == Role::kExpertRouter || role == Role::kSharedExpertGate;
}

bool is_looked_up(Role role, const ModelSpec& spec) {
  if (role == Role::kEmbedding) return !spec.tied_head;
  return role == Role::kPerLayerEmbedding || role == Role::kPositionEmbedding;
}

TensorTable tensor_table(const ModelSpec& spec) { return Builder(spec).build(); }

std::string name_in_layer(const TensorNames& names, std::uint32_t layer, const std::string& name) {
  return names.prefix + names.layers + "." + std::to_string(layer) + "." + name;
}

}  // namespace quire::model
