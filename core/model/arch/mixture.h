// Parts of config.json that readers of mixtures of experts share: counts and widths under all their names, the usual
// rules, and the layers that have experts.
// Thread  start.
// Fails   StartError naming file, key, the value found and the value expected.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/model/arch/reading.h"
#include "core/model/source/json_fields.h"
#include "core/model/spec.h"

namespace quire::model {

// Values of keys that a config.json may leave out; 0: required.
struct MixtureDefaults {
  std::uint32_t num_experts = 0;
  std::uint32_t top_k = 0;
  std::uint32_t width = 0;
  std::string_view width_key = "moe_intermediate_size";
};

// Of groups of experts, as MixtureDefaults.
struct GroupDefaults {
  std::uint32_t num_groups = 1;
  std::uint32_t top_groups = 1;
};

// Experts with the activation of the model's MLP. Its rule: softmax, and weights as they are. Numbers may be lists with
// the same number for each layer.
MixtureSpec read_mixture(const JsonFields& fields, const ModelSpec& spec, const MixtureDefaults& defaults);

// DeepSeek V3's rule: sigmoids, a bias for choosing, groups, weights that are normed if norm_topk_prob says so, and
// then routed_scaling_factor.
void read_grouped_rule(const JsonFields& fields, bool normed, double scale, MixtureSpec& mixture,
                       const GroupDefaults& groups = {});
// n_group and topk_group, which must leave as many experts as a row has.
void read_groups(const JsonFields& fields, const GroupDefaults& groups, backend::RouteRule& rule);

// The first of these keys that is there; the first of all if none is.
std::string_view present_key(const JsonFields& fields, std::initializer_list<std::string_view> keys);

// Gives the layers with a true these experts, and an MLP of `shared_width`, 0 for none, beside them.
void set_experts(const MixtureSpec& mixture, std::uint32_t shared_width, const std::vector<bool>& sparse,
                 ModelSpec& spec);
// All but the first layers, of which first_k_dense_replace says how many.
std::vector<bool> all_but_first(const JsonFields& fields, std::uint32_t usual, std::size_t num_layers);

// The layers that mlp_layer_types calls sparse; without the key those of `usual`.
std::vector<bool> sparse_by_type(const JsonFields& fields, const std::vector<bool>& usual);

// A shared expert's width: experts of `width` side by side, as many as the key says.
std::uint32_t shared_width(const JsonFields& fields, std::string_view key, std::uint64_t usual, std::uint32_t width);

// Names below a layer: shared_name + ".gate_proj" and so on.
void name_shared_expert(std::string_view shared_name, ModelSpec& spec);
// Experts as w1, w3 and w2, and a router, below `block`.
void name_numbered_experts(std::string_view block, ModelSpec& spec);

}  // namespace quire::model
