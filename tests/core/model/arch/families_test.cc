// Each family's config.json: as transformers 5.24 writes it and as the hub has it, what absent keys mean, layers that
// differ, models with images, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::families_test {
namespace {

using ::testing::ElementsAre;
using testing::family;
using ::testing::HasSubstr;
using testing::refusal;
using testing::wrapped;

ModelSpec parse(const std::string& text) { return parse_config(text, "dir/config.json"); }

void expect_same(const ModelSpec& a, const ModelSpec& b) {
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.model_type, b.model_type);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.vocab, b.vocab);
  EXPECT_EQ(a.max_positions, b.max_positions);
  EXPECT_EQ(a.embedding_scale, b.embedding_scale);
  EXPECT_EQ(a.ropes, b.ropes);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.per_layer, b.per_layer);
  EXPECT_EQ(a.final_norm, b.final_norm);
  EXPECT_EQ(a.norm_offset, b.norm_offset);
  EXPECT_EQ(a.tied_head, b.tied_head);
  EXPECT_EQ(a.logit_scale, b.logit_scale);
  EXPECT_EQ(a.logit_softcap, b.logit_softcap);
  EXPECT_EQ(a.bos, b.bos);
  EXPECT_EQ(a.eos, b.eos);
  EXPECT_EQ(a.describe(), b.describe());
}

const char* const kFour = "\"num_hidden_layers\": 4, ";
const char* const kRope = "\"rope_parameters\": {\"rope_theta\": 50000.0, \"rope_type\": \"default\"}";
const char* const kTheta = "\"rope_theta\": 50000.0, \"rope_scaling\": null";
const char* const kTypes =
    R"("layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], )";
// 6 pairs of D 12.
const char* const kFactors =
    "\"short_factor\": [1, 1, 1.5, 2, 2, 2.5], \"long_factor\": [1.5, 2.0, 3.0, 4.0, 6.0, 9.0]";

struct Spelling {
  std::string name;
  std::string now;  // 5.24
  std::string hub;
};

std::string keys(std::initializer_list<const char*> parts) {
  std::string all;
  for (const char* part : parts) all += part;
  return all;
}

std::vector<Spelling> spellings() {
  std::vector<Spelling> all;
  for (const char* plain : {"llama", "mistral", "qwen2", "qwen3", "granite", "olmo2", "starcoder2", "smollm3"}) {
    all.push_back({plain, family(plain, kRope), family(plain, kTheta)});
  }
  const auto add = [&](const char* name, const char* type, const std::string& now, const std::string& hub) {
    all.push_back({name, family(type, now), family(type, hub)});
  };
  add("gemma2", "gemma2",
      keys({kFour, kTypes, R"("hidden_activation": "gelu_pytorch_tanh", "use_bidirectional_attention": null,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 256,
        "sliding_window": 8, "tie_word_embeddings": true, )",
            kRope}),
      keys({kFour, R"("hidden_act": "gelu_pytorch_tanh", "cache_implementation": "hybrid", "sliding_window": 8, )",
            kTheta}));
  add("gemma3", "gemma3_text",
      keys({kFour, kTypes, R"("_sliding_window_pattern": 6, "use_bidirectional_attention": false, "sliding_window": 8,
        "attn_logit_softcapping": null, "final_logit_softcapping": null, "rope_parameters": {
          "full_attention": {"factor": 8.0, "rope_theta": 500000.0, "rope_type": "linear"},
          "sliding_attention": {"rope_theta": 20000.0, "rope_type": "default"}})"}),
      keys({kFour, R"("sliding_window_pattern": 2, "sliding_window": 8, "rope_theta": 500000.0,
        "rope_local_base_freq": 20000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0})"}));
  const std::string longrope = keys({R"("original_max_position_embeddings": 16, "rope_parameters": {
        "original_max_position_embeddings": 16, "partial_rotary_factor": 1.0, "rope_theta": 50000.0,
        "rope_type": "longrope", )",
                                     kFactors, "}"});
  for (const char* kind : {"longrope", "su", "yarn"}) {
    all.push_back({std::string("phi3_") + kind, family("phi3", longrope),
                   family("phi3", keys({R"("original_max_position_embeddings": 16, "rope_theta": 50000.0,
                     "sliding_window": null, "rope_scaling": {"type": ")",
                                        kind, "\", ", kFactors, "}"}))});
  }
  add("phi3_partly_rotated", "phi3", R"("rope_parameters": {"partial_rotary_factor": 0.5, "rope_type": "default"})",
      R"("partial_rotary_factor": 0.5, "rope_scaling": null)");
  add("olmo3", "olmo3",
      keys({kFour, R"("layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "sliding_window": 8, "rope_parameters": {"sliding_attention": {"rope_theta": 50000.0, "rope_type": "default"},
          "full_attention": {"factor": 8.0, "original_max_position_embeddings": 64, "rope_theta": 50000.0,
                             "attention_factor": 1.2, "rope_type": "yarn"}})"}),
      keys({kFour, R"("sliding_window": 8, "rope_theta": 50000.0, "rope_scaling": {"attention_factor": 1.2,
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0, "original_max_position_embeddings": 64,
        "rope_type": "yarn"})"}));
  add("cohere", "cohere",
      keys({"\"use_qk_norm\": true, \"logit_scale\": 0.25, \"tie_word_embeddings\": true, ", kRope}),
      keys({"\"use_qk_norm\": true, \"logit_scale\": 0.25, ", kTheta}));
  add("cohere2", "cohere2", keys({kFour, kTypes, "\"sliding_window\": 8, ", kRope}),
      keys({kFour, R"("sliding_window": 8, "sliding_window_pattern": 2, "use_qk_norm": false, "rotary_pct": 1.0,
        "position_embedding_type": "rope_gptj", )",
            kTheta}));
  add("glm4", "glm4",
      R"("rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 50000.0, "rope_type": "default"})",
      keys({"\"partial_rotary_factor\": 0.5, ", kTheta}));
  add("stablelm", "stablelm",
      R"("rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 50000.0, "rope_type": "default"})",
      keys({"\"partial_rotary_factor\": 0.25, ", kTheta}));
  add("ministral3", "ministral3", R"("rope_parameters": {"factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 32, "rope_theta": 1000000.0, "rope_type": "yarn"})",
      R"("rope_parameters": {"type": "yarn", "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 32, "beta_fast": 32.0, "beta_slow": 1.0})");
  all.push_back({"ministral3_by_rope_scaling", all.back().now,
                 testing::replaced(all.back().now, "rope_parameters", "rope_scaling")});
  add("smollm3_with_windows", "smollm3",
      keys({kFour, R"("use_sliding_window": true, "sliding_window": 8, "no_rope_layers": [1, 0, 1, 0],
        "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"], )",
            kRope}),
      keys({kFour, "\"use_sliding_window\": true, \"sliding_window\": 8, \"no_rope_layer_interval\": 2, ", kTheta}));
  return all;
}

class FamilySpellings : public ::testing::TestWithParam<Spelling> {};

TEST_P(FamilySpellings, OfTransformersAndOfTheHubReadTheSame) {
  expect_same(parse(GetParam().now), parse(GetParam().hub));
}

INSTANTIATE_TEST_SUITE_P(Families, FamilySpellings, ::testing::ValuesIn(spellings()),
                         [](const auto& spelling) { return spelling.param.name; });

struct Default {
  std::string model_type;
  std::string extra;  // keys without a default
  std::uint32_t positions;
  std::string description;
};

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
        Default{"smollm3", kHeads, 32768,
                "H=4 G=4 D=16 V=30 eps=1e-06 window=0*4 tied rope=default(theta=2e+06) ropes=000-"}),
    [](const auto& one) { return one.param.model_type; });

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
  EXPECT_THAT(ropes_of(parse(family("smollm3", "\"no_rope_layers\": [0, 1]"))), ElementsAre(kNone, 0));
}

TEST(FamilyLayers, AListOfLayerTypesGoesBeforeAPattern) {
  const std::string list =
      R"("sliding_window": 9, "sliding_window_pattern": 1, "layer_types": ["full_attention", "sliding_attention"])";
  for (const char* type : {"gemma2", "gemma3_text", "olmo3", "cohere2"}) {
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
  EXPECT_THAT(biases("glm4", "\"attention_bias\": true"), ElementsAre(true, false, false, false));
  EXPECT_THAT(biases("stablelm", "\"use_qkv_bias\": true"), ElementsAre(true, false, false, true));
  EXPECT_THAT(biases("starcoder2", "\"use_bias\": false"), ElementsAre(false, false, false, true));
  for (const char* type : {"gemma2", "gemma3_text", "olmo2", "olmo3", "cohere", "cohere2"}) {
    EXPECT_THAT(biases(type, "\"attention_bias\": true"), ElementsAre(true, true, false, false)) << type;
  }
}

TEST(ModelWithImages, IsItsTextModelWithTheOuterClass) {
  for (const auto& [outer, inner, name] : {std::tuple{"gemma3", "gemma3_text", "Gemma3ForConditionalGeneration"},
                                           {"mistral3", "ministral3", "Mistral3ForConditionalGeneration"},
                                           {"mistral3", "mistral", "Mistral3ForConditionalGeneration"}}) {
    ModelSpec text = parse(family(inner, "\"eos_token_id\": 2, \"tie_word_embeddings\": true"));
    text.architecture = name;
    expect_same(parse(wrapped(outer, family(inner, "\"eos_token_id\": 2"),
                              std::string("\"architectures\": [\"") + name + "\"]")),
                text);
  }
}

TEST(ModelWithImages, IsTiedByItsOuterConfigAlone) {
  const std::string tied = "\"tie_word_embeddings\": true", untied = "\"tie_word_embeddings\": false";
  for (const auto& [outer, inner] : {std::pair{"gemma3", "gemma3_text"}, {"mistral3", "mistral"}}) {
    EXPECT_TRUE(parse(wrapped(outer, family(inner, untied))).tied_head) << "its default";
    EXPECT_TRUE(parse(wrapped(outer, family(inner, untied))).tied_by_default);
    EXPECT_TRUE(parse(wrapped(outer, family(inner, untied), tied)).tied_head);
    EXPECT_FALSE(parse(wrapped(outer, family(inner, tied), untied)).tied_head);
    EXPECT_FALSE(parse(wrapped(outer, family(inner, tied), untied)).tied_by_default);
  }
}

TEST(ModelWithImages, OfGemma3DoesNotCapItsLogits) {
  EXPECT_EQ(parse(wrapped("gemma3", family("gemma3_text", "\"final_logit_softcapping\": 30.0"))).logit_softcap, 0.0f);
}

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
                family("gemma2", "\"hidden_activation\": \"relu\""),
                {"'hidden_activation' is \"relu\"", "gelu_pytorch_tanh"}},
        Refusal{"UnknownActivationUnderTheOldKey",
                family("gemma2", "\"hidden_act\": \"relu\""),
                {"'hidden_act' is \"relu\"", "gelu_pytorch_tanh"}},
        Refusal{"ExactGelu",
                family("starcoder2", "\"hidden_act\": \"gelu\""),
                {"'hidden_act' is \"gelu\"", "gelu_pytorch_tanh"}},
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
}  // namespace quire::model::families_test
