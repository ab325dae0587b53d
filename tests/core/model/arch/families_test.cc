// Each family's config.json: meaning of absent keys, layers that differ, scalars, biases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::families_test {
namespace {

using ::testing::ElementsAre;
using testing::family;
using testing::mpt;

ModelSpec parse(const std::string& text) { return parse_config(text, "dir/config.json"); }

const char* const kRope = "\"rope_parameters\": {\"rope_theta\": 50000.0, \"rope_type\": \"default\"}";

struct Default {
  std::string model_type;
  std::string extra;  // keys without a default
  std::uint32_t positions;
  std::string description;
  std::string kind{};  // of several with one model_type
};

TEST(FamiliesWithAlibi, HaveNoRopeAndAsManyPositionsAsTheyWereTrainedOn) {
  const ModelSpec bloom =
      parse(R"({"model_type": "bloom", "hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 30})");
  EXPECT_EQ(bloom.describe(),
            "bloom E=64 F=256 L=2 H=4 G=4 D=16 V=30 eps=1e-05 window=0*2 tied qkv_bias out_bias mlp_bias "
            "norm=layer+bias act=gelu_tanh ungated alibi=8 embed_norm=layer+bias:1e-05 rope=none ropes=--");
  EXPECT_EQ(bloom.max_model_len(), 2048u);
  const ModelSpec plain = parse(mpt("\"max_seq_len\": 64"));
  EXPECT_EQ(plain.describe(),
            "mpt E=32 F=128 L=2 H=4 G=4 D=8 V=30 eps=1e-05 window=0*2 tied norm=layer act=gelu ungated alibi=8 "
            "rope=none ropes=--");
  EXPECT_EQ(plain.max_model_len(), 64u);
  const AttentionLayer set =
      parse(mpt(R"("attn_config": {"alibi_bias_max": 4, "clip_qkv": 6.0, "softmax_scale": 0.5, "qk_ln": false})"))
          .layers[1]
          .attention;
  EXPECT_EQ(set.alibi, (AlibiSpec{4.0}));
  EXPECT_EQ(set.qkv_clip, 6.0f);
  EXPECT_EQ(set.scale, 0.5f);
  const ModelSpec falcon = parse(family("falcon", R"("alibi": true, "ffn_hidden_size": 28)"));
  EXPECT_EQ(falcon.layers[1].attention.alibi, (AlibiSpec{8.0, true}));
  EXPECT_TRUE(falcon.ropes.empty());
  EXPECT_EQ(parse(family("olmo", "\"clip_qkv\": 8.0")).layers[1].attention.qkv_clip, 8.0f);
  EXPECT_FALSE(parse(family("olmo", "\"clip_qkv\": 8.0")).layers[1].attention.clips_normed);
}

// Slopes of powers of two, and those of the next power for what is left.
TEST(Alibi, SlopesFallByPowersOfTwo) {
  EXPECT_THAT((AlibiSpec{}).slopes(8), ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, 0x1p-5f, 0x1p-6f, 0x1p-7f, 0x1p-8f));
  const auto root = static_cast<float>(std::sqrt(0.5));
  EXPECT_THAT((AlibiSpec{2.0}).slopes(3), ElementsAre(0.5f, 0.25f, root));
  EXPECT_THAT((AlibiSpec{4.0}).slopes(6), ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, root, root * 0.5f));
  EXPECT_EQ((AlibiSpec{1.0, true}).slopes(2)[0], 0.70703125f);  // in bf16
}

TEST(Gemma3n, HasTheWidthsAndSparsitiesOfItsLayersAndSharesKvWithinAKindOfLayer) {
  const ModelSpec spec = parse(testing::replaced(
      family("gemma3n_text", R"("num_kv_shared_layers": 1, "layer_types": ["full_attention", "full_attention"],
        "activation_sparsity_pattern": [0.95, 0.0], "altup_correct_scale": false, "altup_num_inputs": 2)"),
      "\"intermediate_size\": 28", "\"intermediate_size\": [28, 40]"));
  EXPECT_EQ(spec.layers[0].mlp.width, 28u);
  EXPECT_EQ(spec.layers[1].mlp.width, 40u);
  EXPECT_EQ(spec.layers[0].mlp.cutoff, 1.6448536f);
  EXPECT_EQ(spec.layers[1].mlp.cutoff, std::nullopt);
  EXPECT_EQ(spec.layers[1].attention.kv_source, 0u);
  EXPECT_EQ(spec.altup, (AltUpSpec{2, 64, false}));
  // 35 layers as published: ten sparse ones, every fifth full, fifteen that read K and V of earlier ones.
  const ModelSpec whole =
      parse(testing::replaced(family("gemma3n_text"), "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 35"));
  EXPECT_TRUE(whole.layers[9].mlp.cutoff && !whole.layers[10].mlp.cutoff);
  EXPECT_EQ(whole.layers[4].attention.window, 0u);
  EXPECT_EQ(whole.layers[19].attention.kv_source, std::nullopt);
  EXPECT_EQ(whole.layers[20].attention.kv_source, 18u);
  EXPECT_EQ(whole.layers[34].attention.kv_source, 19u);
}

class FamilyDefaultValues : public ::testing::TestWithParam<Default> {};

// Only sizes are given. Scales, caps, thetas, eps and windows are those of transformers' configuration classes.
TEST_P(FamilyDefaultValues, OfAbsentKeysAreThoseOfTransformers) {
  const ModelSpec spec =
      parse("{\"model_type\": \"" + GetParam().model_type +
            "\", \"hidden_size\": 64, \"intermediate_size\": 28, \"num_hidden_layers\": 4" + GetParam().extra + "}");
  EXPECT_EQ(spec.describe(), GetParam().model_type + " E=64 F=28 L=4 " + GetParam().description);
  EXPECT_EQ(spec.max_positions, GetParam().positions);
  EXPECT_TRUE(spec.tied_by_default);
}

const char* const kHeads = ", \"num_attention_heads\": 4, \"vocab_size\": 30";

INSTANTIATE_TEST_SUITE_P(
    Families, FamilyDefaultValues,
    ::testing::Values(
        Default{"gemma2", "", 8192,
                "H=8 G=4 D=256 V=256000 eps=1e-06 window=4096*1,0*1,4096*1,0*1 tied block=sandwich act=gelu_tanh "
                "softcap=50 norm_offset=1 embed=8 logit_softcap=30 rope=default(theta=10000)"},
        Default{"gemma3_text", "", 131072,
                "H=8 G=4 D=256 V=262208 eps=1e-06 window=4096*4 tied qk_norm block=sandwich act=gelu_tanh "
                "norm_offset=1 embed=8 rope=default(theta=1e+06)+default(theta=10000) ropes=1111"},
        Default{"phi3", kHeads, 4096, "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 rope=default(theta=10000)"},
        Default{"granite", kHeads, 2048, "H=4 G=4 D=16 V=30 eps=1e-06 window=0*4 scale=1 rope=default(theta=10000)"},
        Default{"olmo2", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 qk_norm block=post qk_norm_over=row rope=default(theta=10000)"},
        Default{"olmo3", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=4096*3,0*1 qk_norm block=post qk_norm_over=row "
                "rope=default(theta=5e+05)+default(theta=5e+05) ropes=1110"},
        Default{"cohere", kHeads, 8192,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 tied block=parallel norm=layer interleaved logits=0.0625 "
                "rope=default(theta=5e+05)"},
        Default{"cohere2", kHeads, 8192,
                "H=4 G=4 D=128 V=30 eps=1e-05 window=4096*3,0*1 tied block=parallel norm=layer interleaved "
                "logits=0.0625 rope=default(theta=10000) ropes=000-"},
        Default{"glm4", kHeads, 131072,
                "H=4 G=2 D=128 V=30 eps=1.5625e-07 window=0*4 qkv_bias block=sandwich interleaved "
                "rope=default(theta=10000,rotary=0.5)"},
        Default{"stablelm", kHeads, 4096,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 norm=layer+bias rope=default(theta=10000,rotary=0.25)"},
        Default{"starcoder2", kHeads, 4096,
                "H=4 G=2 D=16 V=30 eps=1e-05 window=0*4 tied qkv_bias out_bias mlp_bias norm=layer+bias act=gelu_tanh "
                "ungated rope=default(theta=10000)"},
        Default{"ministral3", ", \"num_attention_heads\": 8, \"vocab_size\": 30", 262144,
                "H=8 G=8 D=128 V=30 eps=1e-05 window=0*4 q_scale=0.1:16384 "
                "rope=yarn(theta=1e+06,factor=16,original=16384,beta=32:1,mscale=1,mscale_all_dim=1)"},
        Default{"arcee", kHeads, 4096,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 act=relu2 ungated rope=default(theta=10000)"},
        Default{"gemma3n_text", ", \"num_attention_heads\": 8", 32768,
                "H=8 G=2 D=256 V=262400 eps=1e-06 window=512*4 tied qk_norm block=sandwich act=gelu_tanh scale=1 "
                "v_norm=rms:1e-06:head layer1(eps=1e-06 qk_norm block=sandwich act=gelu_tanh scale=1 "
                "q_norm=rms:1e-06:head k_norm=- kv_of=0) per_layer=256:262144 altup=4 laurel=64 embed=8 "
                "logit_softcap=30 rope=default(theta=1e+06)+default(theta=10000) ropes=1111"},
        Default{"apertus", kHeads, 65536,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 qk_norm act=xielu ungated "
                "rope=llama3(theta=1.2e+07,factor=8,low=1,high=4,original=8192)"},
        Default{"olmo", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 norm=layer+ones rope=default(theta=10000)"},
        Default{"nanochat", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-06 window=0*4 qk_norm norm=rms+ones act=relu2 ungated norms_after_rope "
                "embed_norm=rms+ones:1e-06 logit_softcap=15 rope=default(theta=10000,negated)"},
        Default{"bitnet", ", \"num_key_value_heads\": 2" + std::string(kHeads), 2048,
                "H=4 G=2 D=16 V=30 eps=1e-05 window=0*4 inner_norms act=relu2 rope=default(theta=5e+05)"},
        Default{"ministral", ", \"num_attention_heads\": 8, \"vocab_size\": 30", 131072,
                "H=8 G=8 D=8 V=30 eps=1e-06 window=4096*4 rope=default(theta=10000)"},
        Default{"seed_oss", ", \"num_attention_heads\": 8, \"vocab_size\": 30", 524288,
                "H=8 G=8 D=128 V=30 eps=1e-06 window=0*4 qkv_bias rope=default(theta=10000)"},
        Default{"ernie4_5", kHeads, 131072,
                "H=4 G=2 D=128 V=30 eps=1e-05 window=0*4 tied interleaved rope=default(theta=5e+05)"},
        Default{"exaone4", ", \"num_attention_heads\": 32, \"vocab_size\": 30", 2048,
                "H=32 G=32 D=2 V=30 eps=1e-05 window=4096*3,0*1 qk_norm block=post rope=default(theta=10000) "
                "ropes=000-"},
        Default{"helium", ", \"num_attention_heads\": 20, \"vocab_size\": 30", 4096,
                "H=20 G=20 D=128 V=30 eps=1e-08 window=0*4 interleaved rope=default(theta=1e+05)"},
        Default{"glm", kHeads, 131072,
                "H=4 G=2 D=128 V=30 eps=1.5625e-07 window=0*4 qkv_bias interleaved "
                "rope=default(theta=10000,rotary=0.5)"},
        Default{"nemotron", kHeads, 4096,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 norm=layer+bias act=relu2 ungated norm_offset=1 "
                "rope=default(theta=10000,rotary=0.5)"},
        Default{"internlm3", kHeads, 32768, "H=4 G=2 D=128 V=30 eps=1e-05 window=0*4 rope=default(theta=10000)"},
        Default{"gemma", "", 8192,
                "H=16 G=16 D=256 V=256000 eps=1e-06 window=0*4 tied act=gelu_tanh norm_offset=1 embed=8 "
                "rope=default(theta=10000)"},
        Default{"vaultgemma", "", 8192,
                "H=8 G=4 D=256 V=256000 eps=1e-06 window=4096*1,0*1,4096*1,0*1 tied act=gelu_tanh softcap=50 "
                "norm_offset=1 embed=8 logit_softcap=30 rope=default(theta=10000)"},
        Default{"qwen2_vl_text", ", \"num_attention_heads\": 8, \"vocab_size\": 30", 32768,
                "H=8 G=8 D=8 V=30 eps=1e-05 window=0*4 qkv_bias rope=default(theta=1e+06)"},
        Default{"qwen2_5_vl_text", ", \"num_attention_heads\": 8, \"vocab_size\": 30", 32768,
                "H=8 G=8 D=8 V=30 eps=1e-05 window=0*4 qkv_bias rope=default(theta=1e+06)"},
        Default{"qwen3_vl_text", ", \"num_attention_heads\": 32, \"vocab_size\": 30", 128000,
                "H=32 G=32 D=128 V=30 eps=1e-06 window=0*4 qk_norm rope=default(theta=5e+05)"},
        Default{"internlm2", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-06 window=0*4 qkv_bias out_bias rope=default(theta=10000)"},
        Default{"hunyuan_v1_dense", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 qk_norm norms_after_rope rope=default(theta=10000)"},
        Default{"phi", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 qkv_bias out_bias mlp_bias block=parallel norm=layer+bias "
                "act=gelu_tanh ungated head_bias rope=default(theta=10000,rotary=0.5)"},
        Default{"gpt_neox", kHeads, 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 qkv_bias out_bias mlp_bias block=parallel_norms "
                "norm=layer+bias act=gelu ungated rope=default(theta=10000,rotary=0.25)"},
        Default{"falcon", ", \"ffn_hidden_size\": 28" + std::string(kHeads), 2048,
                "H=4 G=1 D=16 V=30 eps=1e-05 window=0*4 tied block=parallel norm=layer+bias act=gelu ungated "
                "rope=default(theta=10000)"},
        Default{"opt", ", \"ffn_dim\": 28" + std::string(kHeads), 2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 tied qkv_bias out_bias mlp_bias norm=layer+bias act=relu "
                "ungated positions=embedded:2 rope=none ropes=----"},
        Default{"opt",
                ", \"ffn_dim\": 28, \"do_layer_norm_before\": false, \"word_embed_proj_dim\": 16" + std::string(kHeads),
                2048,
                "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 tied qkv_bias out_bias mlp_bias block=post_sum norm=layer+bias "
                "act=relu ungated final_norm=none W=16 positions=embedded:2 rope=none ropes=----",
                "_350m"},
        Default{
            "opt",
            ", \"ffn_dim\": 28, \"_remove_final_layer_norm\": true, \"layer_norm_elementwise_affine\": false" +
                std::string(kHeads),
            2048,
            "H=4 G=4 D=16 V=30 eps=1e-05 window=0*4 tied qkv_bias out_bias mlp_bias norm=layer+ones act=relu ungated "
            "final_norm=none positions=embedded:2 rope=none ropes=----",
            "_plain_norms"},
        Default{"smollm3", kHeads, 32768,
                "H=4 G=4 D=16 V=30 eps=1e-06 window=0*4 tied rope=default(theta=2e+06) ropes=000-"}),
    [](const auto& one) { return one.param.model_type + one.param.kind; });

std::vector<std::uint32_t> ropes_of(const ModelSpec& spec) {
  std::vector<std::uint32_t> ropes;
  for (const LayerSpec& layer : spec.layers) ropes.push_back(layer.attention.rope);
  return ropes;
}
constexpr std::uint32_t kNone = AttentionLayer::kNoRope;
const char* const kEight = "\"num_hidden_layers\": 8, \"sliding_window\": 9";

TEST(FamilyLayers, SlideByThePatternOfTheirFamily) {
  EXPECT_THAT(parse(family("gemma2", kEight)).windows(), ElementsAre(9, 0, 9, 0, 9, 0, 9, 0));
  EXPECT_THAT(parse(family("gemma3_text", kEight)).windows(), ElementsAre(9, 9, 9, 9, 9, 0, 9, 9));
  EXPECT_THAT(parse(family("olmo3", kEight)).windows(), ElementsAre(9, 9, 9, 0, 9, 9, 9, 0));
  EXPECT_THAT(parse(family("cohere2", kEight)).windows(), ElementsAre(9, 9, 9, 0, 9, 9, 9, 0));
  for (const char* alike : {"phi3", "starcoder2", "ministral3"}) {
    EXPECT_THAT(parse(family(alike, "\"sliding_window\": 9")).windows(), ElementsAre(9, 9)) << alike;
    EXPECT_THAT(parse(family(alike, "\"sliding_window\": null")).windows(), ElementsAre(0, 0)) << alike;
  }
}

TEST(FamilyLayers, HaveTheRopeOfTheirKindOrNone) {
  EXPECT_THAT(ropes_of(parse(family("gemma3_text", kEight))), ElementsAre(1, 1, 1, 1, 1, 0, 1, 1));
  EXPECT_THAT(ropes_of(parse(family("olmo3", kEight))), ElementsAre(1, 1, 1, 0, 1, 1, 1, 0));
  EXPECT_THAT(ropes_of(parse(family("cohere2", kEight))), ElementsAre(0, 0, 0, kNone, 0, 0, 0, kNone));
  EXPECT_THAT(ropes_of(parse(family("smollm3", kEight))), ElementsAre(0, 0, 0, kNone, 0, 0, 0, kNone));
  EXPECT_THAT(ropes_of(parse(family("exaone4", kEight))), ElementsAre(0, 0, 0, kNone, 0, 0, 0, kNone));
  EXPECT_THAT(ropes_of(parse(family("exaone4", "\"sliding_window\": null"))), ElementsAre(0, 0));
  EXPECT_THAT(ropes_of(parse(family("smollm3", "\"no_rope_layers\": [0, 1]"))), ElementsAre(kNone, 0));
}

TEST(FamilyLayers, AListOfLayerTypesGoesBeforeAPattern) {
  const std::string list =
      R"("sliding_window": 9, "sliding_window_pattern": 1, "layer_types": ["full_attention", "sliding_attention"])";
  for (const char* type : {"gemma2", "gemma3_text", "olmo3", "cohere2", "exaone4", "ministral", "vaultgemma"}) {
    EXPECT_THAT(parse(family(type, list)).windows(), ElementsAre(0, 9)) << type;
  }
}

TEST(FamilyLayers, Gemma3sOwnNameOfItsPatternIsNotRead) {
  EXPECT_THAT(parse(family("gemma3_text", "\"_sliding_window_pattern\": 2, \"sliding_window\": 9")).windows(),
              ElementsAre(9, 9));
}

TEST(FamilyLayers, OfSmolLm3SlideOnlyIfTheWindowIsUsedAndTheyHaveNoRope) {
  const std::string window = "\"sliding_window\": 9, \"no_rope_layers\": [1, 0]";
  EXPECT_THAT(parse(family("smollm3", window)).windows(), ElementsAre(0, 0));
  EXPECT_THAT(parse(family("smollm3", "\"use_sliding_window\": true, " + window)).windows(), ElementsAre(0, 9));
}

TEST(FamilyLayers, OfFalconHaveTheKvHeadsAndNormsOfItsKind) {
  const auto layer = [](const std::string& extra) { return parse(family("falcon", extra)).layers[1]; };
  EXPECT_EQ(layer("\"num_kv_heads\": 4").attention.num_kv_heads, 1u) << "7B, whose key is of no effect";
  EXPECT_EQ(layer("\"multi_query\": false").attention.num_kv_heads, 4u);
  EXPECT_EQ(layer("\"parallel_attn\": false").placement, Placement::kPre);
  const std::string is_new = "\"new_decoder_architecture\": true";
  EXPECT_EQ(layer(is_new).attention.num_kv_heads, 4u);
  EXPECT_EQ(layer(is_new + ", \"num_kv_heads\": 2").attention.num_kv_heads, 2u);
  EXPECT_EQ(layer(is_new).placement, Placement::kParallelNorms);
  EXPECT_EQ(layer(is_new + ", \"num_ln_in_parallel_attn\": 1").placement, Placement::kParallel);
}

// 30 / 44 · 44 is less than 30 in doubles.
TEST(FamilyLayers, OfGptJTurnAsManyDimensionsAsTheySay) {
  for (std::uint32_t turned = 2; turned <= 44; turned += 2) {
    const ModelSpec spec = parse(R"({"model_type": "gptj", "n_embd": 88, "n_layer": 1, "n_head": 2, "vocab_size": 30,
        "rotary_dim": )" + std::to_string(turned) +
                                 "}");
    EXPECT_EQ(spec.ropes[0].rotary_dims(44), turned);
  }
}

TEST(FamilyLayers, OfGpt2MayScaleTheirScoresByTheirNumber) {
  const std::string gpt2 = R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 30)";
  EXPECT_EQ(parse(gpt2 + "}").layers[1].attention.scale, 0.25f);
  EXPECT_EQ(parse(gpt2 + ", \"scale_attn_by_inverse_layer_idx\": true}").layers[1].attention.scale, 0.125f);
  EXPECT_EQ(parse(gpt2 + ", \"scale_attn_weights\": false}").layers[1].attention.scale, 1.0f);
  EXPECT_EQ(parse(gpt2 + ", \"n_positions\": 77}").max_model_len(), 77u) << "no rope stretches a table of positions";
}

TEST(FamilyLayers, OfHunyuanWithAnAlphaHaveAThetaOfTheirOwn) {
  const auto rope = [](const std::string& keys) {
    return parse(family("hunyuan_v1_dense", "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 1.0" + keys + "}"))
        .ropes[0];
  };
  EXPECT_EQ(rope("").kind, RopeKind::kDynamic);
  EXPECT_EQ(rope(", \"alpha\": 1000.0").kind, RopeKind::kDefault);
  EXPECT_NEAR(rope(", \"alpha\": 1000.0").theta, 10000.0 * std::pow(1000.0, 12.0 / 10.0), 1e-3);
}

TEST(FamilyActivations, AreThoseOfTheirNamesInTransformers) {
  using enum backend::Activation;
  const auto activation = [](const std::string& text) { return parse(text).layers[0].mlp.activation; };
  const std::pair<const char*, backend::Activation> names[] = {
      {"silu", kSilu},          {"swish", kSilu},
      {"gelu", kGelu},          {"gelu_python", kGelu},
      {"gelu_new", kGeluTanh},  {"gelu_pytorch_tanh", kGeluTanh},
      {"gelu_fast", kGeluTanh}, {"gelu_accurate", kGeluTanh},
      {"relu", kRelu},          {"relu2", kRelu2}};
  for (const auto& [name, expected] : names) {
    const auto key = [&](const char* of) { return std::string("\"") + of + "\": \"" + name + "\""; };
    for (const char* type : {"llama", "starcoder2", "gpt_neox", "phi", "arcee"}) {
      EXPECT_EQ(activation(family(type, key("hidden_act"))), expected) << type << ", " << name;
    }
    EXPECT_EQ(activation(family("gemma2", key("hidden_activation"))), expected) << name;
    EXPECT_EQ(activation(family("falcon", key("activation"))), expected) << name;
    EXPECT_EQ(activation(family("opt", "\"ffn_dim\": 28, " + key("activation_function"))), expected) << name;
  }
}

// Gemma's first checkpoints say gelu and were trained with the other; later ones have a key of their own.
TEST(FamilyActivations, OfGemmaAreByTanhWhereItsFirstKeySaysGelu) {
  for (const char* type : {"gemma", "gemma2", "gemma3_text"}) {
    EXPECT_EQ(parse(family(type, "\"hidden_act\": \"gelu\"")).layers[0].mlp.activation, backend::Activation::kGeluTanh)
        << type;
  }
}

TEST(FamilyScalars, AreReadFromTheirKeys) {
  const ModelSpec granite = parse(family("granite", R"("embedding_multiplier": 12.0, "attention_multiplier": 0.25,
    "residual_multiplier": 0.22, "logits_scaling": 8.0)"));
  EXPECT_EQ(granite.embedding_scale, 12.0f);
  EXPECT_EQ(granite.layers[1].attention.scale, 0.25f);
  EXPECT_EQ(granite.layers[1].residual_scale, 0.22f);
  EXPECT_EQ(granite.logit_scale, 0.125f) << "logits are divided";
  EXPECT_EQ(parse(family("cohere", "\"logit_scale\": 0.25")).logit_scale, 0.25f) << "logits are multiplied";
  EXPECT_EQ(parse(family("gemma2", "\"query_pre_attn_scalar\": 16")).layers[0].attention.scale, 0.25f);
  EXPECT_EQ(parse(family("gemma2", "\"hidden_size\": 72")).embedding_scale, std::sqrt(72.0f));
}

TEST(FamilyScalars, CapsOfNullAreNoneAndGemma3CapsNoScores) {
  const ModelSpec none = parse(family("gemma2", R"("attn_logit_softcapping": null, "final_logit_softcapping": null)"));
  EXPECT_EQ(none.layers[0].attention.softcap, 0.0f);
  EXPECT_EQ(none.logit_softcap, 0.0f);
  const ModelSpec gemma3 =
      parse(family("gemma3_text", R"("attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0)"));
  EXPECT_EQ(gemma3.layers[0].attention.softcap, 0.0f);
  EXPECT_EQ(gemma3.logit_softcap, 30.0f);
}

TEST(FamilyBiases, AreWhereTheFamilyHasThem) {
  const auto biases = [](const std::string& type, const std::string& extra) {
    const LayerSpec layer = parse(family(type, extra)).layers[0];
    return std::vector{layer.attention.qkv_bias, layer.attention.out_bias, layer.mlp.bias, layer.norm.bias};
  };
  const std::string both = "\"attention_bias\": true, \"mlp_bias\": true";
  EXPECT_THAT(biases("granite", both), ElementsAre(true, true, true, false));
  EXPECT_THAT(biases("smollm3", both), ElementsAre(true, true, true, false));
  EXPECT_THAT(biases("arcee", both), ElementsAre(true, true, true, false));
  EXPECT_THAT(biases("nemotron", both), ElementsAre(true, true, true, true));
  EXPECT_THAT(biases("helium", both), ElementsAre(true, false, true, false));
  EXPECT_THAT(biases("internlm3", both), ElementsAre(true, true, true, false));
  EXPECT_THAT(biases("seed_oss", both), ElementsAre(true, false, true, false));
  EXPECT_THAT(biases("seed_oss", "\"attention_bias\": false, \"attention_out_bias\": true"),
              ElementsAre(false, true, false, false));
  EXPECT_THAT(biases("ernie4_5", "\"use_bias\": true"), ElementsAre(true, true, true, false));
  EXPECT_THAT(biases("glm", "\"attention_bias\": false"), ElementsAre(false, false, false, false));
  EXPECT_THAT(biases("glm4", "\"attention_bias\": true"), ElementsAre(true, false, false, false));
  EXPECT_THAT(biases("stablelm", "\"use_qkv_bias\": true"), ElementsAre(true, false, false, true));
  EXPECT_THAT(biases("starcoder2", "\"use_bias\": false"), ElementsAre(false, false, false, true));
  for (const char* type : {"gemma", "gemma2", "vaultgemma", "gemma3_text", "olmo2", "olmo3", "cohere", "cohere2"}) {
    EXPECT_THAT(biases(type, "\"attention_bias\": true"), ElementsAre(true, true, false, false)) << type;
  }
}

}  // namespace
}  // namespace quire::model::families_test
