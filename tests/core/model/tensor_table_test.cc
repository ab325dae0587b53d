#include "core/model/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/model/arch/config.h"
#include "core/model/source/safetensors.h"
#include "tests/core/model/family_configs.h"

namespace quire::model::tensor_table_test {
namespace {

using ::testing::ElementsAre;
using testing::family;
using testing::kExperts;
using testing::name_of;
using testing::wrapped;

TensorTable table_of(const std::string& config) { return tensor_table(parse_config(config, "config.json")); }

// The parts of an expert, as "tensor#matrix first+rows" or "first+run/stride", of one layout.
std::vector<std::string> parts_of_expert(ExpertNames::Layout layout, bool alternating, std::uint32_t expert) {
  ModelSpec spec = parse_config(family("qwen3_moe", kExperts), "config.json");
  spec.names.experts.layout = layout;
  spec.names.experts.alternating = alternating;
  std::vector<std::string> found;
  for (const TensorEntry& entry : tensor_table(spec).entries) {
    const bool is_expert = entry.role == Role::kExpertGateUp || entry.role == Role::kExpertDown;
    if (!is_expert || entry.layer != 1 || entry.expert != expert) continue;
    for (const TensorPart& part : entry.parts) {
      found.push_back(name_of(part).substr(std::string("model.layers.1.mlp.experts.").size()) + " " +
                      shape_text(part.shape) + " " + std::to_string(part.first_row) + "+" +
                      std::to_string(part.num_rows()) + (part.stride == 0 ? "" : "/" + std::to_string(part.stride)));
    }
  }
  return found;
}

TEST(TensorTable, HasEachExpertInEveryLayoutOfTheFile) {
  using enum ExpertNames::Layout;
  EXPECT_THAT(parts_of_expert(kSeparate, false, 2),
              ElementsAre("2.gate_proj.weight [10, 32] 0+10", "2.up_proj.weight [10, 32] 0+10",
                          "2.down_proj.weight [32, 10] 0+32"));
  EXPECT_THAT(parts_of_expert(kTogether, false, 2),
              ElementsAre("gate_up_proj#2 [3, 20, 32] 0+10", "gate_up_proj#2 [3, 20, 32] 10+10",
                          "down_proj#2 [3, 32, 10] 0+32"));
  EXPECT_THAT(parts_of_expert(kTransposed, true, 1),
              ElementsAre("gate_up_proj#1 [3, 32, 20] 0+10/2", "gate_up_proj#1 [3, 32, 20] 1+10/2",
                          "down_proj#1 [3, 10, 32] 0+32"));
}

// Layer 0 slides, and is read by layer 2; layer 1 is full, has its v from k's product, and is read by layer 3.
TEST(TensorTable, OfGemma4HasTheTensorsThatEachLayerHas) {
  const TensorTable table = table_of(family("gemma4_text",
                                            R"("num_hidden_layers": 4,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
         "num_kv_shared_layers": 2, "use_double_wide_mlp": true, "global_head_dim": 20, "attention_k_eq_v": true,
         "num_global_key_value_heads": 1, "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 40)"));
  std::map<std::string, std::string> found;
  for (const TensorPart& tensor : table.tensors()) found[tensor.name] = shape_text(tensor.shape);
  EXPECT_EQ(found.at("model.embed_tokens_per_layer.weight"), "[40, 24]");
  EXPECT_EQ(found.at("model.per_layer_model_projection.weight"), "[24, 32]");
  EXPECT_EQ(found.at("model.per_layer_projection_norm.weight"), "[6]");
  EXPECT_EQ(found.at("model.layers.0.self_attn.v_proj.weight"), "[24, 32]");
  EXPECT_EQ(found.at("model.layers.1.self_attn.q_proj.weight"), "[80, 32]");
  EXPECT_EQ(found.at("model.layers.1.self_attn.k_proj.weight"), "[20, 32]");
  EXPECT_FALSE(found.contains("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_EQ(found.at("model.layers.1.mlp.up_proj.weight"), "[28, 32]");
  for (const std::string layer : {"model.layers.2.", "model.layers.3."}) {
    EXPECT_EQ(found.at(layer + "mlp.up_proj.weight"), "[56, 32]");
    EXPECT_EQ(found.at(layer + "per_layer_input_gate.weight"), "[6, 32]");
    EXPECT_EQ(found.at(layer + "per_layer_projection.weight"), "[32, 6]");
    for (const char* unused : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) {
      EXPECT_FALSE(found.contains(layer + "self_attn." + unused));
      EXPECT_TRUE(table.skips(layer + "self_attn." + unused));
    }
  }
  EXPECT_FALSE(table.skips("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_FALSE(table.skips("model.layers.0.self_attn.k_proj.weight"));
}

// The parts of an entry of layer 1: "name first+rows".
std::vector<std::string> parts_of(const TensorTable& table, Role role) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : table.entries) {
    if (entry.role != role || entry.layer != 1) continue;
    for (const TensorPart& part : entry.parts) {
      out.push_back(part.name.substr(std::string("model.layers.1.").size()) + " " + std::to_string(part.first_row) +
                    "+" + std::to_string(part.num_rows()));
    }
  }
  return out;
}

TEST(TensorTable, PackedTensorsAreCutIntoQThenKThenVAndGateThenUp) {
  const TensorTable phi3 = table_of(family("phi3"));
  EXPECT_THAT(parts_of(phi3, Role::kQkv),
              ElementsAre("self_attn.qkv_proj.weight 0+48", "self_attn.qkv_proj.weight 48+24",
                          "self_attn.qkv_proj.weight 72+24"));
  EXPECT_THAT(parts_of(phi3, Role::kGateUp),
              ElementsAre("mlp.gate_up_proj.weight 0+28", "mlp.gate_up_proj.weight 28+28"));
}

TEST(TensorTable, TensorsOfTheirOwnAreTheSamePartsInTheSameOrder) {
  const TensorTable llama = table_of(family("llama"));
  EXPECT_THAT(parts_of(llama, Role::kQkv), ElementsAre("self_attn.q_proj.weight 0+48", "self_attn.k_proj.weight 0+24",
                                                       "self_attn.v_proj.weight 0+24"));
  EXPECT_THAT(parts_of(llama, Role::kGateUp), ElementsAre("mlp.gate_proj.weight 0+28", "mlp.up_proj.weight 0+28"));
  EXPECT_THAT(parts_of(table_of(family("starcoder2")), Role::kGateUp), ElementsAre("mlp.c_fc.weight 0+28"));
}

std::vector<Role> roles_of_layer(const std::string& config, std::uint32_t layer) {
  std::vector<Role> roles;
  for (const TensorEntry& entry : table_of(config).entries) {
    if (entry.layer == layer) roles.push_back(entry.role);
  }
  return roles;
}

TEST(TensorTable, EntriesOfALayerAreInTheOrderOfTheirUse) {
  using enum Role;
  EXPECT_THAT(roles_of_layer(family("llama"), 1), ElementsAre(kInputNorm, kQkv, kOut, kMlpNorm, kGateUp, kDown));
  EXPECT_THAT(
      roles_of_layer(family("gemma3_text"), 1),
      ElementsAre(kInputNorm, kQkv, kQNorm, kKNorm, kOut, kAttentionNorm, kMlpNorm, kGateUp, kDown, kMlpOutNorm));
  EXPECT_THAT(roles_of_layer(family("olmo2"), 0),
              ElementsAre(kQkv, kQNorm, kKNorm, kOut, kAttentionNorm, kGateUp, kDown, kMlpOutNorm));
  EXPECT_THAT(roles_of_layer(family("cohere"), 0), ElementsAre(kInputNorm, kQkv, kOut, kGateUp, kDown));
  EXPECT_THAT(roles_of_layer(family("starcoder2"), 0),
              ElementsAre(kInputNorm, kInputNorm, kQkv, kOut, kMlpNorm, kMlpNorm, kGateUp, kDown));
}

TEST(TensorTable, LayersAreInOrderBetweenTheEmbeddingAndTheHead) {
  const TensorTable table = table_of(family("stablelm"));
  EXPECT_EQ(table.entries.front().role, Role::kEmbedding);
  EXPECT_EQ(table.entries.back().role, Role::kHead);
  std::vector<std::uint32_t> layers;
  for (const TensorEntry& entry : table.entries) layers.push_back(entry.layer);
  EXPECT_TRUE(std::is_sorted(layers.begin() + 1, layers.end()));
  EXPECT_THAT(roles_of_layer(family("stablelm"), TensorEntry::kTop),
              ElementsAre(Role::kEmbedding, Role::kFinalNorm, Role::kFinalNorm, Role::kHead));
}

TEST(TensorTable, ANormsBiasFollowsItsScaleAndOnlyTheScaleHasAnOffset) {
  const TensorTable table = table_of(family("starcoder2"));
  EXPECT_EQ(table.entries[1].kind, TensorEntry::Kind::kVector);
  EXPECT_EQ(table.entries[2].kind, TensorEntry::Kind::kBias);
  for (const TensorEntry& entry : table_of(family("gemma3_text")).entries) {
    EXPECT_EQ(entry.offset, entry.kind == TensorEntry::Kind::kVector ? 1.0f : 0.0f) << entry.parts[0].name;
  }
}

TEST(TensorTable, ATiedHeadIsNoTensorButMayBeInTheFile) {
  const TensorTable tied = table_of(family("llama", "\"tie_word_embeddings\": true"));
  EXPECT_EQ(tied.entries.back().role, Role::kFinalNorm);
  EXPECT_TRUE(tied.skips("lm_head.weight"));
  EXPECT_FALSE(table_of(family("llama")).skips("lm_head.weight"));
  const TensorTable inner = table_of(wrapped("gemma3", family("gemma3_text")));
  EXPECT_TRUE(inner.skips("lm_head.weight"));
}

TEST(TensorTable, RotaryBuffersAreSkippedWhereverTheyAre) {
  const TensorTable table = table_of(family("llama"));
  EXPECT_TRUE(table.skips("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(table.skips("model.rotary_emb.inv_freq"));
  EXPECT_FALSE(table.skips("model.layers.0.self_attn.rotary_emb.inv_freq.weight"));
  EXPECT_FALSE(table.skips("model.layers.0.self_attn.q_proj.weight"));
}

TEST(TensorTable, ThePartsOfAModelThatSeeAreSkipped) {
  const TensorTable table = table_of(wrapped("gemma3", family("gemma3_text")));
  for (const char* name : {"vision_tower.embeddings.patch_embedding.weight", "vision_tower.encoder.layers.0.norm.bias",
                           "multi_modal_projector.mm_input_projection_weight", "model.vision_tower.ln_pre.weight",
                           "model.multi_modal_projector.norm.weight"}) {
    EXPECT_TRUE(table.skips(name)) << name;
    EXPECT_FALSE(table_of(family("gemma3_text")).skips(name)) << name;
  }
  EXPECT_FALSE(table.skips("model.norm.weight"));
}

TEST(TensorTable, AStarStandsForAnyCharactersAndAllElseForItself) {
  TensorTable table;
  table.skipped = {"whole.weight", "start.*", "*.end", "a*b*c"};
  for (const char* name : {"whole.weight", "start.", "start.of.it", ".end", "the.end", "abc", "a.b.c", "aabbcc"}) {
    EXPECT_TRUE(table.skips(name)) << name;
  }
  for (const char* name : {"whole.weights", "a.whole.weight", "start", "end", "the.end.", "ab", "acb", "abcd", ""}) {
    EXPECT_FALSE(table.skips(name)) << name;
  }
}

}  // namespace
}  // namespace quire::model::tensor_table_test
