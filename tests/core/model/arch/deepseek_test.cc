// Latent attention in config.json: sizes, the scale of scores, layers, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::deepseek_test {
namespace {

using testing::family;
using ::testing::HasSubstr;

const std::string kExpertSizes = R"("n_routed_experts": 8, "num_experts_per_tok": 2)";

ModelSpec parse(const std::string& type, const std::string& extra = "") {
  return parse_config(family(type, kExpertSizes + (extra.empty() ? "" : ", " + extra)), "dir/config.json");
}

std::string refusal(const std::string& type, const std::string& extra) {
  return testing::refusal([&] { parse(type, extra); });
}

TEST(LatentConfig, AbsentKeysHaveTheFamilysValues) {
  const auto latent = [](const std::string& type, const std::string& extra = "") {
    const std::string all = parse(type, extra).describe();
    const std::size_t at = all.find("latent=");
    return all.substr(at, all.find(' ', at) - at);
  };
  EXPECT_EQ(latent("deepseek_v2"), "latent=512:64:128:128:1536:1e-06");
  EXPECT_EQ(latent("deepseek_v2", "\"q_lora_rank\": null"), "latent=512:64:128:128:0:1e-06");
  EXPECT_EQ(latent("deepseek_v3"), "latent=512:64:128:128:1536:1e-06");
  EXPECT_EQ(latent("kimi_k2"), "latent=512:64:128:128:1536:1e-06");
  EXPECT_EQ(latent("glm4_moe_lite"), "latent=512:64:192:256:768:1e-06");
  EXPECT_EQ(latent("mistral4", R"("rope_parameters": {"rope_type": "default", "rope_theta": 1e4})"),
            "latent=256:64:64:128:1024:1e-06");
}

TEST(LatentConfig, TheCacheHasOneRowForAllHeads) {
  const ModelSpec spec = parse("deepseek_v3");
  const AttentionLayer& attention = spec.layers.front().attention;
  EXPECT_EQ(attention.num_kv_heads, 1u);
  EXPECT_EQ(attention.head_dim, 576u);
  EXPECT_EQ(attention.out_width(), 4u * 128);
  const backend::KvShape shape = spec.kv_shape(16, 1, backend::KvType::kBF16);
  EXPECT_EQ(shape.layers.front(), (backend::KvLayer{1, 576, 0, 0, 512}));
  ModelSpec shared = spec;
  shared.copy_kv_heads(4);
  EXPECT_EQ(shared.layers.front().attention.kv_copies, 1u);
}

TEST(LatentConfig, MscaleOfAllDimensionsScalesTheScoresTwice) {
  const auto scale = [](const std::string& rope) {
    return parse("deepseek_v3", R"("rope_theta": 1e4, "rope_scaling": )" + rope).layers.front().attention.scale;
  };
  const double plain = 1.0 / std::sqrt(192.0);
  EXPECT_FLOAT_EQ(scale("null"), static_cast<float>(plain));
  const std::string yarn = R"({"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096)";
  EXPECT_FLOAT_EQ(scale(yarn + "}"), static_cast<float>(plain));
  const double m = 0.1 * std::log(40.0) + 1.0;
  EXPECT_FLOAT_EQ(scale(yarn + R"(, "mscale": 1.0, "mscale_all_dim": 1.0})"), static_cast<float>(plain * m * m));
}

TEST(LatentConfig, TheFirstLayersAreDenseAndThoseBehindTheLastAreSkipped) {
  const auto dense = [](const ModelSpec& spec) {
    return std::ranges::count_if(spec.layers, [](const LayerSpec& layer) { return !layer.experts; });
  };
  EXPECT_EQ(dense(parse("deepseek_v3", "\"num_hidden_layers\": 5")), 3);
  EXPECT_EQ(dense(parse("kimi_k2", "\"num_hidden_layers\": 5")), 1);
  EXPECT_EQ(dense(parse("deepseek_v2", "\"num_hidden_layers\": 5")), 0);
  EXPECT_EQ(dense(parse("deepseek_v2", R"("num_hidden_layers": 5, "first_k_dense_replace": 2)")), 2);
  const ModelSpec spec = parse("deepseek_v3", "\"num_hidden_layers\": 5");
  EXPECT_NE(std::ranges::find(spec.names.skipped, "model.layers.5.*"), spec.names.skipped.end());
}

TEST(LatentConfig, GroupsOfV2AreOrderedByTheirBestExpert) {
  const ModelSpec limited =
      parse("deepseek_v2", R"("topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2)");
  EXPECT_TRUE(limited.mixture()->rule.groups_by_highest);
  EXPECT_EQ(limited.mixture()->rule.num_groups, 4u);
  EXPECT_FALSE(limited.mixture()->rule.normed);
  EXPECT_EQ(parse("deepseek_v2", R"("n_group": 4, "topk_group": 2)").mixture()->rule.num_groups, 1u);
  EXPECT_FALSE(parse("deepseek_v3", R"("n_group": 4, "topk_group": 2, "first_k_dense_replace": 0)")
                   .mixture()
                   ->rule.groups_by_highest);
}

TEST(LatentConfig, RefusesWhatTheFamiliesDoNotHave) {
  EXPECT_THAT(refusal("deepseek_v3", "\"attention_bias\": true"), HasSubstr("'attention_bias'"));
  EXPECT_THAT(refusal("deepseek_v3", "\"moe_layer_freq\": 2"), HasSubstr("'moe_layer_freq' is 2"));
  EXPECT_THAT(refusal("deepseek_v3", "\"scoring_func\": \"softmax\""), HasSubstr("expected sigmoid"));
  EXPECT_THAT(refusal("deepseek_v2", "\"scoring_func\": \"sigmoid\""), HasSubstr("expected softmax"));
  EXPECT_THAT(refusal("deepseek_v2", "\"topk_method\": \"noaux_tc\""), HasSubstr("'topk_method'"));
  EXPECT_THAT(refusal("mistral4", "\"n_group\": 1"), HasSubstr("'rope_parameters' is missing"));
  for (const std::string size : {"0", "7", "65537"}) {
    EXPECT_THAT(refusal("deepseek_v3", "\"kv_lora_rank\": " + size), HasSubstr("'kv_lora_rank' is " + size));
  }
  EXPECT_EQ(refusal("deepseek_v3", "\"kv_lora_rank\": 65536"), "");
  for (const std::string size : {"0", "1025"}) {
    EXPECT_THAT(refusal("deepseek_v3", "\"v_head_dim\": " + size), HasSubstr("'v_head_dim' is " + size));
  }
}

}  // namespace
}  // namespace quire::model::deepseek_test
