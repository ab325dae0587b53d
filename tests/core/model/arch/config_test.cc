#include "core/model/arch/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::config_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kTinyLlama;
using ::testing::Not;
using testing::refusal;
using testing::replaced;

// The tiny llama with `extra` keys put in front: a duplicate key's last value wins, so use replaced() to change one.
std::string with(const std::string& extra, const std::string& base = kTinyLlama) {
  return "{" + extra + ", " + base.substr(1);
}

ModelSpec parse(const std::string& text) { return parse_config(text, "dir/config.json"); }
std::string refused(const std::string& text) {
  return refusal([&] { parse(text); });
}

std::string of_type(const std::string& type, const std::string& architecture) {
  return replaced(replaced(kTinyLlama, "\"llama\"", "\"" + type + "\""), "LlamaForCausalLM", architecture);
}
const std::string kMistral = of_type("mistral", "MistralForCausalLM");
const std::string kQwen2 = of_type("qwen2", "Qwen2ForCausalLM");
const std::string kQwen3 = of_type("qwen3", "Qwen3ForCausalLM");

TEST(ModelSpec, ReadsLlamasShapesAndDefaults) {
  const ModelSpec config = parse(kTinyLlama);
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.hidden, 8u);
  EXPECT_EQ(config.layers[0].mlp.width, 12u);
  EXPECT_EQ(config.num_layers(), 2u);
  EXPECT_EQ(config.layers[0].attention.num_heads, 2u);
  EXPECT_EQ(config.layers[0].attention.num_kv_heads, 1u);
  EXPECT_EQ(config.layers[0].attention.head_dim, 4u);
  EXPECT_EQ(config.vocab, 20u);
  EXPECT_EQ(config.layers[0].norm.eps, 1e-6f);
  EXPECT_EQ(config.ropes[0].kind, RopeKind::kDefault);
  EXPECT_EQ(config.ropes[0].theta, 10000.0);
  EXPECT_THAT(config.windows(), ElementsAre(0u, 0u));
  EXPECT_FALSE(config.tied_head || config.layers[0].attention.qkv_bias || config.layers[0].attention.out_bias ||
               config.layers[0].mlp.bias || config.layers[0].attention.q_norm.has_value());
  EXPECT_EQ(config.max_model_len(), 64u);
  EXPECT_FALSE(config.bos.has_value());
  EXPECT_TRUE(config.eos.empty());
}

TEST(ModelSpec, PositionsThatAreNotGivenAreTheFamilysOwn) {
  for (const auto& [text, positions] :
       {std::pair(kTinyLlama, 2048u), {kMistral, 131072u}, {kQwen2, 32768u}, {kQwen3, 32768u}}) {
    EXPECT_EQ(parse(replaced(text, "max_position_embeddings", "no_positions")).max_positions, positions);
  }
}

TEST(ModelSpec, AnUnknownTypeOfUpTo64LettersIsToldTheNearest) {
  for (const std::size_t length : {6u, 63u, 64u}) {
    EXPECT_THAT(refusal([&] { parse(of_type("llama" + std::string(length - 5, 'x'), "X")); }),
                HasSubstr("the nearest of"));
  }
  EXPECT_THAT(refusal([&] { parse(of_type("llama" + std::string(60, 'x'), "X")); }),
              AllOf(HasSubstr("expected one of llama"), Not(HasSubstr("the nearest of"))));
}

TEST(ModelSpec, WhatChangesNothingIsReadOver) {
  EXPECT_EQ(parse(replaced(kTinyLlama, "LlamaForCausalLM", "LLaMAForCausalLM")).architecture, "LlamaForCausalLM");
  EXPECT_EQ(parse(with("\"pretraining_tp\": 2")).describe(), parse(kTinyLlama).describe());
}

TEST(ModelSpec, EndsThatAreNoTokensAreLeftOut) {
  const ModelSpec some = parse(with(R"("eos_token_id": [1, 20, -1, 19, 99999999999999999999], "bos_token_id": 20)"));
  EXPECT_THAT(some.eos, ElementsAre(1, 19));
  EXPECT_FALSE(some.bos.has_value());
  EXPECT_EQ(parse(with(R"("bos_token_id": 19)")).bos, 19);
}

TEST(ModelSpec, LlamaWithoutKvHeadsHasAsManyAsHeads) {
  EXPECT_EQ(parse(replaced(kTinyLlama, "\"num_key_value_heads\": 1,", "")).layers[0].attention.num_kv_heads, 2u);
}

TEST(ModelSpec, AHeadDimThatIsGivenWins) {
  EXPECT_EQ(parse(with("\"head_dim\": 10")).layers[0].attention.head_dim, 10u);
  EXPECT_EQ(parse(with("\"head_dim\": null")).layers[0].attention.head_dim, 4u);
}

TEST(ModelSpec, LlamaBiasesFollowTheirKeys) {
  const ModelSpec attention = parse(with("\"attention_bias\": true"));
  EXPECT_TRUE(attention.layers[0].attention.qkv_bias && attention.layers[0].attention.out_bias &&
              !attention.layers[0].mlp.bias);
  EXPECT_TRUE(parse(with("\"mlp_bias\": true")).layers[0].mlp.bias);
}

TEST(ModelSpec, Qwen2HasQkvBiasesAlwaysAndNoOther) {
  for (const std::string& text : {kQwen2, with("\"attention_bias\": false", kQwen2)}) {
    const ModelSpec config = parse(text);
    EXPECT_TRUE(config.layers[0].attention.qkv_bias && !config.layers[0].attention.out_bias &&
                !config.layers[0].mlp.bias && !config.layers[0].attention.q_norm.has_value());
  }
}

TEST(ModelSpec, Qwen3HasHeadNormsAndAHeadDimOf128WhereNoneIsGiven) {
  const ModelSpec config = parse(kQwen3);
  EXPECT_TRUE(config.layers[0].attention.q_norm.has_value() && !config.layers[0].attention.qkv_bias);
  EXPECT_EQ(config.layers[0].attention.head_dim, 128u);
  const ModelSpec biased = parse(with("\"attention_bias\": true, \"head_dim\": 4", kQwen3));
  EXPECT_TRUE(biased.layers[0].attention.qkv_bias && biased.layers[0].attention.out_bias);
  EXPECT_EQ(biased.layers[0].attention.head_dim, 4u);
}

TEST(ModelSpec, MistralsWindowIs4096WhereAbsentAndNoneWhereNull) {
  EXPECT_THAT(parse(kMistral).windows(), ElementsAre(4096u, 4096u));
  EXPECT_THAT(parse(with("\"sliding_window\": null", kMistral)).windows(), ElementsAre(0u, 0u));
  EXPECT_THAT(parse(with("\"sliding_window\": 16", kMistral)).windows(), ElementsAre(16u, 16u));
}

TEST(ModelSpec, QwenWindowsCountOnlyWhenTheyAreUsedAndFromMaxWindowLayersOn) {
  EXPECT_THAT(parse(with("\"sliding_window\": 16", kQwen2)).windows(), ElementsAre(0u, 0u));
  const std::string used = "\"use_sliding_window\": true, \"sliding_window\": 16";
  EXPECT_THAT(parse(with(used, kQwen2)).windows(), ElementsAre(0u, 0u)) << "max_window_layers is 28 where absent";
  EXPECT_THAT(parse(with(used + ", \"max_window_layers\": 1", kQwen2)).windows(), ElementsAre(0u, 16u));
  EXPECT_THAT(parse(with(used + ", \"layer_types\": [\"sliding_attention\", \"full_attention\"]", kQwen3)).windows(),
              ElementsAre(16u, 0u));
}

TEST(ModelSpec, AQwenWindowThatIsUsedButNullIsNone) {
  EXPECT_THAT(parse(with("\"use_sliding_window\": true, \"max_window_layers\": 0", kQwen2)).windows(),
              ElementsAre(4096u, 4096u));
  EXPECT_THAT(
      parse(with("\"use_sliding_window\": true, \"max_window_layers\": 0, \"sliding_window\": null", kQwen2)).windows(),
      ElementsAre(0u, 0u));
}

TEST(ModelSpec, LlamaIgnoresASlidingWindowAsTransformersDoes) {
  EXPECT_THAT(parse(with("\"sliding_window\": 16")).windows(), ElementsAre(0u, 0u));
}

TEST(ModelSpec, ReadsEosAsNumberListOrNull) {
  EXPECT_THAT(parse(with("\"eos_token_id\": 2, \"bos_token_id\": 1")).eos, ElementsAre(2));
  EXPECT_EQ(parse(with("\"bos_token_id\": 1")).bos, std::optional<TokenId>(1));
  EXPECT_THAT(parse(with("\"eos_token_id\": [2, 7]")).eos, ElementsAre(2, 7));
  EXPECT_TRUE(parse(with("\"eos_token_id\": null")).eos.empty());
}

TEST(ModelSpec, KvShapeIsThatOfItsLayersAndHeads) {
  const backend::KvShape shape = parse(kTinyLlama).kv_shape(32, 7, backend::KvType::kBF16);
  EXPECT_EQ(shape.num_layers(), 2u);
  EXPECT_EQ(shape.layers, backend::kv_layers(2, 1, 4));
  EXPECT_EQ(shape.block_tokens, 32u);
  EXPECT_EQ(shape.num_blocks, 7u);
  EXPECT_EQ(shape.type, backend::KvType::kBF16);
}

TEST(ModelSpec, DescribesEveryPartOfTheArithmetic) {
  EXPECT_EQ(parse(with("\"sliding_window\": 16, \"tie_word_embeddings\": true", kMistral)).describe(),
            "mistral E=8 F=12 L=2 H=2 G=1 D=4 V=20 eps=1e-06 window=16*2 tied rope=default(theta=10000)");
  EXPECT_THAT(
      parse(with("\"use_sliding_window\": true, \"sliding_window\": 16, \"max_window_layers\": 1", kQwen2)).describe(),
      HasSubstr("window=0*1,16*1 qkv_bias rope="));
}

TEST(RopeSettings, BothSpellingsReadTheSame) {
  const ModelSpec scaling =
      parse(with("\"rope_theta\": 500000.0, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}"));
  const ModelSpec parameters =
      parse(with("\"rope_parameters\": {\"rope_type\": \"linear\", \"rope_theta\": 500000.0, \"factor\": 4}"));
  EXPECT_EQ(scaling.ropes[0].kind, RopeKind::kLinear);
  EXPECT_EQ(scaling.describe(), parameters.describe());
  EXPECT_THAT(scaling.describe(), HasSubstr("rope=linear(theta=5e+05,factor=4)"));
  EXPECT_EQ(scaling.max_model_len(), 256u);
}

TEST(RopeSettings, RopeScalingWinsUnlessItIsEmptyOrNull) {
  const std::string parameters = "\"rope_parameters\": {\"rope_type\": \"dynamic\", \"factor\": 2}";
  EXPECT_EQ(parse(with(parameters + ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}")).ropes[0].kind,
            RopeKind::kLinear);
  EXPECT_EQ(parse(with(parameters + ", \"rope_scaling\": null")).ropes[0].kind, RopeKind::kDynamic);
  EXPECT_EQ(parse(with(parameters + ", \"rope_scaling\": {}")).ropes[0].kind, RopeKind::kDynamic);
}

TEST(RopeSettings, Llama3ReadsItsBandsAndOriginalLength) {
  const ModelSpec config = parse(with(R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 32})"));
  EXPECT_EQ(config.ropes[0].kind, RopeKind::kLlama3);
  EXPECT_EQ(config.ropes[0].factor, 8.0);
  EXPECT_EQ(config.ropes[0].original_positions, 32u);
  EXPECT_EQ(config.max_model_len(), 64u);
}

TEST(RopeSettings, YarnTakesZeroAsAbsentAndItsFactorFromTheLengths) {
  const ModelSpec config = parse(with(R"("rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 16,
    "beta_fast": 0, "mscale": 0, "truncate": false})"));
  EXPECT_EQ(config.ropes[0].factor, 4.0);
  EXPECT_EQ(config.ropes[0].beta_fast, 32.0);
  EXPECT_EQ(config.ropes[0].beta_slow, 1.0);
  EXPECT_FALSE(config.ropes[0].truncate);
  EXPECT_FALSE(config.ropes[0].attention_factor.has_value());
}

TEST(RopeSettings, YarnReachesFactorTimesTheOriginalLength) {
  const ModelSpec config = parse(with("\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0}"));
  EXPECT_EQ(config.ropes[0].original_positions, 64u);
  EXPECT_EQ(config.max_model_len(), 256u);
}

TEST(RopeSettings, TheTopLevelOriginalLengthHasTheFirstWord) {
  const ModelSpec config =
      parse(with(R"("original_max_position_embeddings": 8, "rope_scaling": {"type": "yarn", "factor": 2,
    "original_max_position_embeddings": 16})"));
  EXPECT_EQ(config.ropes[0].original_positions, 8u);
}

TEST(RopeSettings, DynamicIsCappedAtTheTrainedLength) {
  EXPECT_EQ(parse(with("\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 8.0}")).max_model_len(), 64u);
}

TEST(RopeSettings, PositionsEndWhereTheAnglesStopBeingExact) {
  EXPECT_EQ(parse(replaced(kTinyLlama, ": 64}", ": 10485760}")).max_model_len(), 1u << 22);
}

struct Refusal {
  std::string name;
  std::string text;
  std::vector<std::string> says;
};

class ConfigRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ConfigRefuses, NamingFileAndKey) {
  const std::string message = refused(GetParam().text);
  EXPECT_THAT(message, HasSubstr("dir/config.json"));
  for (const std::string& part : GetParam().says) EXPECT_THAT(message, HasSubstr(part));
}

std::string rope(const std::string& parameters) { return with("\"rope_scaling\": {" + parameters + "}"); }

INSTANTIATE_TEST_SUITE_P(
    ModelSpec, ConfigRefuses,
    ::testing::Values(
        Refusal{"BrokenJson", "{\"model_type\": ", {"not valid JSON"}},
        Refusal{"AList", "[]", {"expected a JSON object"}},
        Refusal{"NoModelType", "{}", {"'model_type' is missing", "llama, mistral, qwen2, qwen3"}},
        Refusal{"UnknownModelType",
                of_type("gemma9", "Gemma9ForCausalLM"),
                {"'model_type' is \"gemma9\"", "gemma2", "smollm3", "the nearest of them is gemma"}},
        Refusal{"MisspelledModelType",
                of_type("smolm3", "SmolLM3ForCausalLM"),
                {"'model_type' is \"smolm3\"", "the nearest of them is smollm3"}},
        Refusal{"AnIndexer",
                of_type("deepseek_v32", "DeepseekV32ForCausalLM"),
                {"'model_type' is \"deepseek_v32\"", "attention to positions that an indexer chooses"}},
        Refusal{"AnIndexerOfGlm",
                of_type("glm_moe_dsa", "GlmMoeDsaForCausalLM"),
                {"'model_type' is \"glm_moe_dsa\"", "attention to positions that an indexer chooses"}},
        Refusal{"TwoAttentionsInALayer",
                of_type("longcat_flash", "LongcatFlashForCausalLM"),
                {"'model_type' is \"longcat_flash\"", "layers of two attentions"}},
        Refusal{
            "OtherHead", of_type("llama", "LlamaForSequenceClassification"), {"'architectures'", "LlamaForCausalLM"}},
        Refusal{"TwoArchitectures", replaced(kTinyLlama, "[\"", "[\"X\", \""), {"'architectures'"}},
        Refusal{"MissingHidden",
                replaced(kTinyLlama, "\"hidden_size\": 8,", ""),
                {"'hidden_size' is missing", "[1, 4194304]"}},
        Refusal{"StringHidden",
                replaced(kTinyLlama, "\"hidden_size\": 8", "\"hidden_size\": \"8\""),
                {"'hidden_size' is \"8\" (string)"}},
        Refusal{"NegativeLayers", replaced(kTinyLlama, "layers\": 2", "layers\": -2"), {"'num_hidden_layers' is -2"}},
        Refusal{"ZeroVocab", replaced(kTinyLlama, "\"vocab_size\": 20", "\"vocab_size\": 0"), {"'vocab_size' is 0"}},
        Refusal{"VocabPastTheSampler",
                replaced(kTinyLlama, "\"vocab_size\": 20", "\"vocab_size\": 1048577"),
                {"'vocab_size'", "1048576]"}},
        Refusal{"HugeFfn",
                replaced(kTinyLlama, "\"intermediate_size\": 12", "\"intermediate_size\": 99999999999"),
                {"'intermediate_size'"}},
        Refusal{"FractionalHeads",
                replaced(kTinyLlama, "attention_heads\": 2", "attention_heads\": 2.5"),
                {"'num_attention_heads' is 2.5"}},
        Refusal{"MoreKvHeadsThanHeads",
                replaced(kTinyLlama, "value_heads\": 1", "value_heads\": 4"),
                {"'num_key_value_heads' is 4"}},
        Refusal{"KvHeadsNoDivisor",
                replaced(replaced(replaced(kTinyLlama, "attention_heads\": 2", "attention_heads\": 4"),
                                  "value_heads\": 1", "value_heads\": 3"),
                         "hidden_size\": 8", "hidden_size\": 16"),
                {"'num_key_value_heads' is 3", "divisor of num_attention_heads = 4"}},
        Refusal{"MistralWithoutKvHeads",
                replaced(kMistral, "\"num_key_value_heads\": 1,", ""),
                {"'num_key_value_heads' is missing"}},
        Refusal{"OddHeadDim", with("\"head_dim\": 5"), {"'head_dim'", "is 5"}},
        Refusal{"HiddenNoMultipleOfHeads",
                replaced(kTinyLlama, "\"hidden_size\": 8", "\"hidden_size\": 9"),
                {"'hidden_size' is 9", "num_attention_heads = 2"}},
        Refusal{"UnknownActivation",
                with("\"hidden_act\": \"quick_gelu\""),
                {"'hidden_act' is \"quick_gelu\"", "expected one of silu, swish, gelu"}},
        Refusal{"PartialRotation", with("\"partial_rotary_factor\": 0.5"), {"'partial_rotary_factor' is 5E-1"}},
        Refusal{"PartialRotationInside",
                rope("\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5"),
                {"'rope_scaling.partial_rotary_factor'"}},
        Refusal{"Quantised", with("\"quantization_config\": {\"bits\": 4}"), {"'quantization_config'"}},
        Refusal{"MistralWithBiases", with("\"attention_bias\": true", kMistral), {"'attention_bias'", "mistral"}},
        Refusal{"Qwen2WithMlpBiases", with("\"mlp_bias\": true", kQwen2), {"'mlp_bias'", "qwen2"}},
        Refusal{"BoolAsNumber", with("\"tie_word_embeddings\": 1"), {"'tie_word_embeddings' is 1", "true or false"}},
        Refusal{"NegativeEps", with("\"rms_norm_eps\": -1e-6"), {"'rms_norm_eps'"}},
        Refusal{"EosText", with("\"eos_token_id\": \"</s>\""), {"'eos_token_id'"}},
        Refusal{"UnknownLayerType",
                with("\"layer_types\": [\"full_attention\", \"linear_attention\"]", kQwen2),
                {"'layer_types'", "linear_attention", "layer 1"}},
        Refusal{"TooFewLayerTypes",
                with("\"layer_types\": [\"full_attention\"]", kQwen2),
                {"'layer_types' has 1 entries", "= 2"}},
        Refusal{"SlidingWithoutWindow",
                with("\"layer_types\": [\"full_attention\", \"sliding_attention\"]", kQwen2),
                {"'layer_types'", "no sliding window"}},
        Refusal{"MistralMixedLayers",
                with("\"sliding_window\": 8, \"layer_types\": [\"full_attention\", \"sliding_attention\"]", kMistral),
                {"'layer_types'", "mistral"}},
        Refusal{"UnknownRope",
                rope("\"type\": \"su\", \"factor\": 4"),
                {"'rope_scaling.type' is \"su\"", "default, linear, llama3, yarn, dynamic"}},
        Refusal{"LongRope",
                with("\"rope_parameters\": {\"rope_type\": \"longrope\", \"long_factor\": [1]}"),
                {"rope_parameters.long_factor"}},
        Refusal{"RopeByLayer",
                with("\"rope_parameters\": {\"full_attention\": {}, \"sliding_attention\": {}}"),
                {"rope_parameters.full_attention", "per layer"}},
        Refusal{"LinearWithoutFactor", rope("\"type\": \"linear\""), {"'rope_scaling.factor' is missing"}},
        Refusal{"FactorBelowOne", rope("\"type\": \"linear\", \"factor\": 0.5"), {"'rope_scaling.factor' is 5E-1"}},
        Refusal{"Llama3WithoutBands",
                rope("\"type\": \"llama3\", \"factor\": 8"),
                {"'rope_scaling.low_freq_factor' is missing"}},
        Refusal{"Llama3BandsCrossed",
                rope("\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 4"),
                {"'rope_scaling.high_freq_factor' is 4", "more than low_freq_factor = 4"}},
        Refusal{"YarnBetasCrossed",
                rope("\"type\": \"yarn\", \"factor\": 8, \"beta_fast\": 1, \"beta_slow\": 2"),
                {"'rope_scaling.beta_fast'", "beta_slow = 2"}},
        Refusal{"ThetaOfOne", with("\"rope_theta\": 1"), {"'rope_theta' is 1"}},
        Refusal{"RopeScalingText", with("\"rope_scaling\": \"linear\""), {"'rope_scaling'", "expected an object"}}),
    [](const auto& refusal_case) { return refusal_case.param.name; });

GenerationDefaults generation(const std::string& text) {
  return parse_generation_defaults(text, "dir/generation_config.json", parse(with("\"eos_token_id\": 2")));
}

TEST(GenerationDefaults, ReadsSamplingAndLeavesAbsentKeysAbsent) {
  const GenerationDefaults some = generation(R"({"temperature": 0.6, "top_p": 0.95, "eos_token_id": [3, 4]})");
  EXPECT_EQ(some.temperature, std::optional(0.6f));
  EXPECT_EQ(some.top_p, std::optional(0.95f));
  EXPECT_FALSE(some.top_k || some.min_p);
  EXPECT_THAT(some.eos, ElementsAre(3, 4));
  const GenerationDefaults rest = generation(R"({"top_k": 20, "min_p": 0.05, "eos_token_id": 5})");
  EXPECT_EQ(rest.top_k, std::optional(20));
  EXPECT_EQ(rest.min_p, std::optional(0.05f));
  EXPECT_THAT(rest.eos, ElementsAre(5));
  EXPECT_FALSE(rest.repetition_penalty || rest.max_new_tokens);
  const GenerationDefaults others = generation(R"({"repetition_penalty": 1.05, "max_new_tokens": 2048})");
  EXPECT_EQ(others.repetition_penalty, std::optional(1.05f));
  EXPECT_EQ(others.max_new_tokens, std::optional(2048u));
}

TEST(GenerationDefaults, KeepsTheConfigsEosWhereItHasNone) { EXPECT_THAT(generation("{}").eos, ElementsAre(2)); }

TEST(GenerationDefaults, KeepsTheConfigsEosWhereItsOwnAreNoTokens) {
  EXPECT_THAT(generation(R"({"eos_token_id": [20, 151645]})").eos, ElementsAre(2));
}

TEST(GenerationDefaults, MinusOneKeepsAllCandidatesAsZeroDoes) {
  EXPECT_EQ(generation(R"({"top_k": -1})").top_k, std::optional(0));
  EXPECT_EQ(generation(R"({"top_k": 50.0})").top_k, std::optional(50));
}

TEST(GenerationDefaults, ReadsNoSamplingAsGreedy) {
  EXPECT_EQ(generation(R"({"do_sample": false, "temperature": 0.6})").temperature, std::optional(0.0f));
  EXPECT_EQ(generation(R"({"do_sample": true})").temperature, std::nullopt);
}

TEST(GenerationDefaults, RefusesValuesOutOfRangeNamingFileAndKey) {
  for (const std::string text : {R"({"repetition_penalty": 0})", R"({"repetition_penalty": 2.1})"}) {
    EXPECT_THAT(refusal([&] { generation(text); }), HasSubstr("'repetition_penalty'"));
  }
  EXPECT_THAT(refusal([&] { generation(R"({"max_new_tokens": 0})"); }), HasSubstr("'max_new_tokens'"));
  for (const std::string text : {R"({"top_p": 0})", R"({"top_p": 1.5})"}) {
    EXPECT_THAT(refusal([&] { generation(text); }),
                AllOf(HasSubstr("dir/generation_config.json"), HasSubstr("'top_p'")));
  }
  EXPECT_THAT(refusal([] { generation(R"({"temperature": -1})"); }), HasSubstr("'temperature'"));
  EXPECT_THAT(refusal([] { generation(R"({"top_k": -2})"); }), HasSubstr("'top_k'"));
  EXPECT_THAT(refusal([] { generation(R"({"top_k": 1.5})"); }), HasSubstr("'top_k'"));
  EXPECT_THAT(refusal([] { generation(R"({"min_p": 2})"); }), HasSubstr("'min_p'"));
  EXPECT_THAT(refusal([] { generation(R"({"eos_token_id": 1.5})"); }), HasSubstr("'eos_token_id'"));
  EXPECT_THAT(refusal([] { generation("nonsense"); }), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace quire::model::config_test
