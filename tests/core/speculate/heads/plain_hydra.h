// Test support: Hydra heads for the tiny target, as a file has them, and as plain loops in f64 compute them.
// Owner   values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/speculate/book_tree.h"
#include "tests/core/speculate/heads/tiny_head.h"

namespace quire::speculate::testing {

inline constexpr std::uint32_t kHydraHeads = 3;
inline constexpr std::uint32_t kHydraBlocks = 3;  // of a head
inline constexpr std::uint32_t kTinyHidden = 16;
inline constexpr std::uint32_t kHeadVocab = 40;

inline const std::string kHydraMlp =
    R"({"hydra_num_heads": 3, "hydra_num_layers": 3, "hydra_head_arch": "mlp", "grounded_heads": true,
  "hidden_state_offset": 0, "base_model_name_or_path": "x", "transformers_version": "4.37.2"})";
inline const std::string kHydraPrefix = model::testing::replaced(kHydraMlp, "\"mlp\"", "\"prefix-mlp\"");

enum class Repeated { kWritten, kLeftOut, kDifferent };  // the blocks behind the second

struct HydraNames {
  bool prefix = false;
  std::string block(std::uint32_t head, std::uint32_t block, const char* part) const {
    return "hydra_mlp." + std::to_string(head) + "." + std::to_string(prefix ? 2 * block + 1 : block) + "." + part;
  }
  std::string output(std::uint32_t head) const {
    return "hydra_lm_head." + std::to_string(head) + (prefix ? ".1" : "");
  }
};

struct PlainHydra {
  explicit PlainHydra(Repeated repeated, bool prefix = false) : names{prefix} {
    for (std::uint32_t head = 0; head < kHydraHeads; ++head) {
      const std::uint64_t wide = (head + 2) * kTinyHidden;
      add(names.block(head, 0, "res_connection"), {kTinyHidden, wide});
      add(names.block(head, 0, "linear"), {kTinyHidden, wide});
      for (std::uint32_t block = 1; block < kHydraBlocks; ++block) {
        if (block > 1 && repeated == Repeated::kLeftOut) continue;
        const std::string first = names.block(head, 1, "linear");
        add(names.block(head, block, "linear"), {kTinyHidden, kTinyHidden},
            repeated == Repeated::kWritten ? first : "");
      }
      add(names.output(head), {kHeadVocab, kTinyHidden});
    }
    if (prefix) add_prefix();
  }
  // Weight and bias, with the numbers of `like`, if there is one.
  void add(const std::string& name, const std::vector<std::uint64_t>& shape, const std::string& like = "") {
    for (const char* part : {".weight", ".bias"}) {
      const bool weight = part == std::string(".weight");
      tensors.push_back(model::testing::filled((like.empty() ? name : like) + part, "F32",
                                               weight ? shape : std::vector<std::uint64_t>{shape[0]}));
      tensors.back().name = name + part;
    }
  }
  void add_prefix() {
    const std::string at = "prefix_embeding_layer.";
    const auto one = [&](const std::string& name, const std::vector<std::uint64_t>& shape) {
      tensors.push_back(model::testing::filled(at + name, "F32", shape));
    };
    one("embed_tokens.weight", {kHeadVocab, kTinyHidden});
    one("norm.weight", {kTinyHidden});
    one("layers.0.input_layernorm.weight", {kTinyHidden});
    one("layers.0.post_attention_layernorm.weight", {kTinyHidden});
    one("layers.0.self_attn.q_proj.weight", {16, kTinyHidden});
    one("layers.0.self_attn.k_proj.weight", {8, kTinyHidden});
    one("layers.0.self_attn.v_proj.weight", {8, kTinyHidden});
    one("layers.0.self_attn.o_proj.weight", {kTinyHidden, 16});
    one("layers.0.self_attn.rotary_emb.inv_freq", {4});
    one("layers.0.mlp.gate_proj.weight", {24, kTinyHidden});
    one("layers.0.mlp.up_proj.weight", {24, kTinyHidden});
    one("layers.0.mlp.down_proj.weight", {kTinyHidden, 24});
  }
  const TestTensor& tensor(const std::string& name) const {
    const auto found = std::ranges::find(tensors, name, &TestTensor::name);
    EXPECT_NE(found, tensors.end()) << name;
    return *found;
  }
  std::vector<double> linear(const std::string& name, const std::vector<double>& x) const {
    std::vector<double> y = times(tensor(name + ".weight"), x);
    const std::vector<float> bias = values_of(tensor(name + ".bias"));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += static_cast<double>(bias[i]);
    return y;
  }
  // Of what comes behind `path`, which begins with the newest token that is committed.
  std::vector<double> logprobs(const float* state, const Path& path) const {
    const TestTensor embed = model::testing::filled("model.embed_tokens.weight", "F32", {kHeadVocab, kTinyHidden});
    const std::vector<float> embeddings = values_of(embed);
    std::vector<double> x(state, state + kTinyHidden);
    for (const TokenId token : path) {
      const auto row = embeddings.begin() + static_cast<std::ptrdiff_t>(token) * kTinyHidden;
      x.insert(x.end(), row, row + kTinyHidden);
    }
    const auto head = static_cast<std::uint32_t>(path.size()) - 1;
    std::vector<double> y = linear(names.block(head, 0, "res_connection"), x);
    add_silu(linear(names.block(head, 0, "linear"), x), y);
    for (std::uint32_t block = 1; block < kHydraBlocks; ++block) {
      const std::string own = names.block(head, block, "linear");
      const bool there = std::ranges::find(tensors, own + ".weight", &TestTensor::name) != tensors.end();
      add_silu(linear(there ? own : names.block(head, 1, "linear"), y), y);
    }
    std::vector<double> logits = linear(names.output(head), y);
    double sum = 0.0;
    for (const double logit : logits) sum += std::exp(logit);
    for (double& logit : logits) logit -= std::log(sum);
    return logits;
  }
  static void add_silu(const std::vector<double>& gates, std::vector<double>& y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += gates[i] / (1.0 + std::exp(-gates[i]));
  }

  HydraNames names;
  std::vector<TestTensor> tensors;
};

}  // namespace quire::speculate::testing
