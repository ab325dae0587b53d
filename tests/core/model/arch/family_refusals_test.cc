// Configurations that no family's reader takes: the error names the key, its value and the one expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::family_refusals_test {
namespace {

using testing::family;
using ::testing::HasSubstr;
using testing::mpt;
using testing::refusal;
using testing::wrapped;

ModelSpec parse(const std::string& text) { return parse_config(text, "dir/config.json"); }

const char* const kRope = "\"rope_parameters\": {\"rope_theta\": 50000.0, \"rope_type\": \"default\"}";

struct Refusal {
  std::string name;
  std::string text;
  std::vector<std::string> says;
};

class FamilyRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(FamilyRefuses, NamingTheKeyAndWhatWasExpected) {
  const std::string message = refusal([&] { parse(GetParam().text); });
  EXPECT_THAT(message, HasSubstr("dir/config.json"));
  for (const std::string& part : GetParam().says) EXPECT_THAT(message, HasSubstr(part));
}

std::string longrope(const std::string& factors) {
  return family("phi3", "\"rope_scaling\": {\"type\": \"longrope\", " + factors + "}");
}

INSTANTIATE_TEST_SUITE_P(
    Families, FamilyRefuses,
    ::testing::Values(
        Refusal{"FlatRopeOfGemma3",
                family("gemma3_text", kRope),
                {"'rope_parameters'", "full_attention and sliding_attention"}},
        Refusal{"FlatRopeOfOlmo3", family("olmo3", kRope), {"'rope_parameters'", "expected settings of each"}},
        Refusal{"RopeOfFullLayersAlone",
                family("olmo3", "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}}"),
                {"'rope_parameters'", "full_attention and sliding_attention"}},
        Refusal{"AnOddNumberThatTurns",
                family("glm4", "\"partial_rotary_factor\": 0.25"),
                {"'partial_rotary_factor' turns 3 of 12", "expected an even number"}},
        Refusal{"NothingThatTurns",
                family("stablelm", "\"partial_rotary_factor\": 0.01"),
                {"'partial_rotary_factor' turns 0 of 8"}},
        Refusal{"PartOfAHeadWhereTheWholeTurns",
                family("olmo2", "\"partial_rotary_factor\": 0.5"),
                {"'partial_rotary_factor' is 5E-1", "expected 1"}},
        Refusal{"TooFewShortFactors",
                longrope("\"short_factor\": [1, 1, 1, 1, 1], \"long_factor\": [1, 1, 1, 1, 1, 1]"),
                {"'short_factor' has 5 numbers", "expected 6"}},
        Refusal{"TooManyLongFactors",
                longrope("\"short_factor\": [1, 1, 1, 1, 1, 1], \"long_factor\": [1, 1, 1, 1, 1, 1, 1]"),
                {"'long_factor' has 7 numbers", "expected 6"}},
        Refusal{"NoShortFactors",
                longrope("\"long_factor\": [1, 1, 1, 1, 1, 1]"),
                {"'rope_scaling.short_factor' is missing", "a number for each pair"}},
        Refusal{"NoLongFactors",
                longrope("\"short_factor\": [1, 1, 1, 1, 1, 1]"),
                {"'rope_scaling.long_factor' is missing"}},
        Refusal{"LongRopeWhereNoneIs",
                family("granite", "\"rope_scaling\": {\"type\": \"longrope\"}"),
                {"'rope_scaling.type' is \"longrope\"", "default, linear, llama3, yarn, dynamic"}},
        Refusal{"TooFewNoRopeLayers",
                family("smollm3", "\"no_rope_layers\": [1]"),
                {"'no_rope_layers' has 1 entries", "num_hidden_layers = 2"}},
        Refusal{"TooManyNoRopeLayers",
                family("smollm3", "\"no_rope_layers\": [1, 0, 1]"),
                {"'no_rope_layers' has 3 entries", "num_hidden_layers = 2"}},
        Refusal{"SlidingLayersWithoutAWindow",
                family("gemma2", "\"sliding_window\": null"),
                {"'layer_types'", "layer 0", "no sliding window"}},
        Refusal{"RowsThatSeeLaterOnes",
                family("gemma3_text", "\"use_bidirectional_attention\": true"),
                {"'use_bidirectional_attention' is true", "expected false"}},
        Refusal{"RowsThatSeeAll",
                family("gemma2", "\"use_bidirectional_attention\": \"all\""),
                {"'use_bidirectional_attention' is \"all\""}},
        Refusal{"UnknownActivation",
                family("gemma2", "\"hidden_activation\": \"mish\""),
                {"'hidden_activation' is \"mish\"", "gelu_pytorch_tanh"}},
        Refusal{"StreamsThatAreTooMany",
                family("gemma3n_text", "\"num_kv_shared_layers\": 0, \"altup_num_inputs\": 5"),
                {"'altup_num_inputs' is 5", "1", "4"}},
        Refusal{"AnotherActiveStream",
                family("gemma3n_text", "\"num_kv_shared_layers\": 0, \"altup_active_idx\": 1"),
                {"'altup_active_idx' is 1"}},
        Refusal{"WidthsOfMlpsThatAreTooFew",
                testing::replaced(family("gemma3n_text", "\"num_kv_shared_layers\": 0"), "\"intermediate_size\": 28",
                                  "\"intermediate_size\": [28]"),
                {"'intermediate_size'", "has 1 numbers", "num_hidden_layers = 2"}},
        Refusal{"SparsitiesThatAreTooMany",
                family("gemma3n_text", "\"num_kv_shared_layers\": 0, \"activation_sparsity_pattern\": [0.5, 0.0, 0.5]"),
                {"'activation_sparsity_pattern'", "has 3 numbers"}},
        Refusal{"ASparsityOfAll",
                family("gemma3n_text", "\"num_kv_shared_layers\": 0, \"activation_sparsity_pattern\": [1.0, 0.0]"),
                {"'activation_sparsity_pattern'"}},
        Refusal{"Gemma3nWithoutEmbeddingsOfLayers",
                family("gemma3n_text", "\"num_kv_shared_layers\": 0, \"hidden_size_per_layer_input\": 0"),
                {"'hidden_size_per_layer_input' is 0", "expected 1 or more"}},
        Refusal{"ApertusWithAnotherActivation",
                family("apertus", "\"hidden_act\": \"silu\""),
                {"'hidden_act' is \"silu\"", "expected xielu"}},
        Refusal{"BloomWhoseResidualsAreNormed",
                family("bloom", "\"apply_residual_connection_post_layernorm\": true"),
                {"'apply_residual_connection_post_layernorm' is true", "expected false"}},
        Refusal{"MptWithOtherWidths", mpt("\"expansion_ratio\": 8"), {"'expansion_ratio' is 8", "expected 4"}},
        Refusal{"MptWithBiases", mpt("\"no_bias\": false"), {"'no_bias' is false", "expected true"}},
        Refusal{"MptWithScaledLogits",
                mpt("\"logit_scale\": \"inv_sqrt_d_model\""),
                {"'logit_scale' is \"inv_sqrt_d_model\"", "expected null"}},
        Refusal{"MptWithEmbeddedPositions",
                mpt("\"attn_config\": {\"alibi\": false}"),
                {"alibi", "is false", "expected true"}},
        Refusal{"MptWithPrefixes",
                mpt("\"attn_config\": {\"prefix_lm\": true}"),
                {"prefix_lm", "is true", "expected false"}},
        Refusal{
            "MptWithNormsOfHeads", mpt("\"attn_config\": {\"qk_ln\": true}"), {"qk_ln", "is true", "expected false"}},
        Refusal{"MptWithOneKvHead",
                mpt("\"attn_config\": {\"attn_type\": \"multiquery_attention\"}"),
                {"attn_type", "multiquery_attention", "expected multihead_attention"}},
        Refusal{"KvHeadsOfFalconThatDoNotDivide",
                family("falcon", "\"new_decoder_architecture\": true, \"num_kv_heads\": 3"),
                {"'num_kv_heads' is 3", "divisor of num_attention_heads = 4"}},
        Refusal{"OptWithoutEmbeddings",
                family("opt", "\"ffn_dim\": 28, \"word_embed_proj_dim\": 0"),
                {"'word_embed_proj_dim' is 0", "[1, 4194304]"}},
        Refusal{"BitnetWhoseHeadsAreNoHiddenSize",
                family("bitnet"),
                {"'head_dim'", "is 12", "hidden_size / num_attention_heads"}},
        Refusal{"AGptWithAnEncoder",
                R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 30,
                    "add_cross_attention": true})",
                {"'add_cross_attention' is true", "no encoder"}},
        Refusal{
            "MoreOfGptJsHeadThanItHas",
            R"({"model_type": "gptj", "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 30, "rotary_dim": 10})",
            {"'rotary_dim' is 10", "[2, 8]"}},
        Refusal{"GptJsSizesUnderOtherNames", family("gptj"), {"'n_embd' is missing"}},
        Refusal{"BiasesOfInternLm3ThatDiffer",
                family("internlm3", "\"qkv_bias\": true"),
                {"'qkv_bias' and bias differ", "both true or both false"}},
        Refusal{"SectionsOfRopeWhereNoImagesAre",
                family("qwen3", "\"rope_scaling\": {\"rope_type\": \"default\", \"mrope_section\": [2, 2, 2]}"),
                {"'rope_scaling.mrope_section' is set", "not supported"}},
        Refusal{"PatternOfExaone4InLetters",
                family("exaone4", "\"sliding_window_pattern\": \"LLLG\""),
                {"'sliding_window_pattern' is \"LLLG\""}},
        Refusal{"Cohere2WithNormsOfHeads",
                family("cohere2", "\"use_qk_norm\": true"),
                {"'use_qk_norm' is true", "expected false"}},
        Refusal{"NoTextConfig", "{\"model_type\": \"gemma3\"}", {"'text_config' is missing"}},
        Refusal{"TextOfAnUnknownFamily",
                wrapped("gemma3", family("gemma9")),
                {"'text_config.model_type' is \"gemma9\"", "gemma3_text"}},
        Refusal{"OuterClassOfAnotherModel",
                wrapped("gemma3", family("gemma3_text"), "\"architectures\": [\"Gemma3ForCausalLM\"]"),
                {"'architectures'", "Gemma3ForConditionalGeneration"}}),
    [](const auto& refusal_case) { return refusal_case.param.name; });

}  // namespace
}  // namespace quire::model::family_refusals_test
