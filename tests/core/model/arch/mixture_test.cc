// Mixtures in config.json: numbers under all their names, rules by family, the layers that are dense, refusals.
#include "core/model/arch/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::arch_mixture_test {
namespace {

using ::testing::ElementsAre;
using testing::family;
using ::testing::HasSubstr;

ModelSpec parse(const std::string& text) { return parse_config(text, "dir/config.json"); }

std::string refusal(const std::string& text) {
  return testing::refusal([&] { parse(text); });
}

std::vector<bool> sparse(const ModelSpec& spec) {
  std::vector<bool> out;
  for (const LayerSpec& layer : spec.layers) out.push_back(layer.experts.has_value());
  return out;
}

TEST(MixtureConfig, AbsentKeysHaveTheFamilysValues) {
  const auto text = [](const std::string& type, const std::string& extra = "") {
    const ModelSpec spec = parse(family(type, "\"num_hidden_layers\": 1" + (extra.empty() ? "" : ", " + extra)));
    const std::string all = spec.describe();
    const std::size_t at = all.find("experts=");
    return all.substr(at, all.find(' ', at) - at);
  };
  EXPECT_EQ(text("mixtral"), "experts=2of8:softmax:normed=0:0:F=28:silu");
  EXPECT_EQ(text("qwen2_moe"), "experts=4of60:softmax:F=1408:silu:shared_gate");
  EXPECT_EQ(text("qwen3_moe"), "experts=8of128:softmax:F=768:silu");
  EXPECT_EQ(text("olmoe"), "experts=8of64:softmax:F=28:silu");
  EXPECT_EQ(text("gpt_oss"), "experts=4of128:logit:F=28:silu:bias:clamp=1.702:7:router_bias");
  EXPECT_EQ(text("granitemoe"), "experts=2of8:logit:F=28:silu");
  EXPECT_EQ(text("phimoe"), "experts=2of16:sparsemixer:margin=0.02:F=28:silu");
  EXPECT_EQ(text("ernie4_5_moe", "\"moe_layer_start_index\": 0"),
            "experts=6of64:softmax:normed=0:1e-12:F=1536:silu:choice_bias");
  EXPECT_EQ(text("glm4_moe", "\"first_k_dense_replace\": 0"),
            "experts=8of128:sigmoid:normed=1e-20:0:F=1408:silu:choice_bias");
  EXPECT_EQ(text("dots1", "\"n_routed_experts\": 4, \"num_experts_per_tok\": 2"),
            "experts=2of4:sigmoid:F=1408:silu:choice_bias");
  EXPECT_EQ(text("solar_open", "\"moe_intermediate_size\": 20"),
            "experts=8of128:sigmoid:normed=1e-20:0:F=20:silu:choice_bias");
  EXPECT_EQ(text("hunyuan_v1_moe", "\"num_experts\": 4"), "experts=1of4:softmax:normed=0:0:F=28:silu");
  EXPECT_EQ(text("exaone_moe", "\"first_k_dense_replace\": 0"),
            "experts=8of64:sigmoid:normed=1e-20:0:scale=2.5:F=1024:silu:choice_bias");
  EXPECT_EQ(text("hy_v3", "\"mlp_layer_types\": [\"sparse\"]"),
            "experts=8of192:sigmoid:normed=1e-20:0:scale=2.826:F=1536:silu:choice_bias");
  EXPECT_EQ(text("qwen3_vl_moe_text"), "experts=4of60:softmax:normed=0:0:F=1408:silu");
  EXPECT_EQ(text("minimax_m2"), "experts=8of256:sigmoid:normed=0:0:F=28:silu:choice_bias");
}

TEST(MixtureConfig, CountsHaveSeveralNames) {
  for (const char* count : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}) {
    for (const char* chosen : {"num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token", "top_k_experts"}) {
      const ModelSpec spec = parse(family("qwen3_moe", "\"" + std::string(count) + "\": 6, \"" + chosen + "\": 3"));
      EXPECT_EQ(spec.mixture()->rule.num_experts, 6u) << count;
      EXPECT_EQ(spec.mixture()->rule.top_k, 3u) << chosen;
    }
  }
}

TEST(MixtureConfig, SomeLayersAreDense) {
  const auto layers = [](const std::string& type, const std::string& extra) {
    return sparse(parse(family(type, "\"num_hidden_layers\": 5, " + extra)));
  };
  EXPECT_THAT(layers("qwen2_moe", R"("decoder_sparse_step": 2, "mlp_only_layers": [3])"),
              ElementsAre(false, true, false, false, false));
  EXPECT_THAT(layers("qwen3_moe", R"("mlp_only_layers": [0, 4])"), ElementsAre(false, true, true, true, false));
  EXPECT_THAT(layers("ernie4_5_moe", R"("moe_layer_interval": 2, "moe_layer_end_index": -1)"),
              ElementsAre(false, true, false, true, false));
  EXPECT_THAT(layers("ernie4_5_moe", R"("moe_layer_start_index": 2, "moe_layer_end_index": 3)"),
              ElementsAre(false, false, true, true, false));
  EXPECT_THAT(layers("glm4_moe", R"("first_k_dense_replace": 2)"), ElementsAre(false, false, true, true, true));
  EXPECT_THAT(layers("exaone_moe", R"("mlp_layer_types": ["dense", "sparse", "dense", "sparse", "sparse"])"),
              ElementsAre(false, true, false, true, true));
  EXPECT_THAT(layers("hy_v3", R"("num_experts": 4, "num_experts_per_tok": 2)"),
              ElementsAre(false, true, true, true, true));
  const ModelSpec glm = parse(family("glm4_moe", R"("moe_intermediate_size": 10, "n_shared_experts": 2)"));
  EXPECT_EQ(glm.layers[0].mlp.width, 28u);
  EXPECT_EQ(glm.layers[1].mlp.width, 20u);
  EXPECT_FALSE(parse(family("mixtral")).layers[0].has_mlp());
}

TEST(MixtureConfig, OlmoesClipIsBehindItsNorms) {
  const AttentionLayer clipped = parse(family("olmoe", "\"clip_qkv\": 8.0")).layers[1].attention;
  EXPECT_EQ(clipped.qkv_clip, 8.0f);
  EXPECT_TRUE(clipped.clips_normed);
  EXPECT_EQ(parse(family("olmoe", "\"clip_qkv\": null")).describe(), parse(family("olmoe")).describe());
  EXPECT_THAT(refusal(family("olmoe", "\"clip_qkv\": -1.0")), HasSubstr("'clip_qkv'"));
}

TEST(MixtureConfig, GroupsHaveToHoldTheExpertsOfARow) {
  const std::string groups = R"("n_routed_experts": 12, "num_experts_per_tok": 4, "n_group": 4, "topk_group": )";
  const ModelSpec spec = parse(family("glm4_moe", groups + "2"));
  EXPECT_EQ(spec.mixture()->rule.num_groups, 4u);
  EXPECT_EQ(spec.mixture()->rule.top_groups, 2u);
  EXPECT_THAT(refusal(family("glm4_moe", groups + "1")), HasSubstr("'topk_group' is 1"));
  EXPECT_THAT(refusal(family("glm4_moe", R"("n_routed_experts": 12, "n_group": 5)")), HasSubstr("'n_group' is 5"));
}

TEST(MixtureConfig, RefusesWhatNoFamilyHas) {
  EXPECT_THAT(refusal(family("mixtral", "\"num_experts_per_tok\": 9")), HasSubstr("'num_experts_per_tok' is 9"));
  EXPECT_THAT(refusal(family("mixtral", "\"num_local_experts\": 0")), HasSubstr("'num_local_experts' is 0"));
  EXPECT_THAT(refusal(family("dots1")), HasSubstr("'num_experts'"));
  EXPECT_THAT(refusal(family("hunyuan_v1_moe", R"("num_experts": 4, "moe_topk": [2, 1])")),
              HasSubstr("expected one number for all layers"));
  EXPECT_THAT(refusal(family("hy_v3", R"("mlp_layer_types": ["sparse"])")),
              HasSubstr("'mlp_layer_types' has 1 entries"));
  EXPECT_THAT(refusal(family("hy_v3", R"("mlp_layer_types": ["sparse", "some"])")),
              HasSubstr("expected dense or sparse"));
  const std::string mxfp4 = R"("quantization_config": {"quant_method": "mxfp4"})";
  EXPECT_EQ(refusal(family("gpt_oss", mxfp4)), "");
  EXPECT_THAT(refusal(family("qwen3_moe", mxfp4)), HasSubstr("'quantization_config'"));
  EXPECT_THAT(refusal(family("gpt_oss", R"("quantization_config": {"quant_method": "aqlm"})")),
              HasSubstr("'quantization_config'"));
  EXPECT_THAT(refusal(family("phimoe", "\"num_experts_per_tok\": 3")), HasSubstr("sparsemixer chooses two"));
}

}  // namespace
}  // namespace quire::model::arch_mixture_test
