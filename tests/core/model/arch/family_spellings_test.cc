// Each family's config.json as transformers 5.24 writes it and as the hub has it, and as the text part of a model with
// images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::spellings_test {
namespace {

using testing::family;
using ::testing::HasSubstr;
using testing::refusal;
using ::testing::StartsWith;
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
  for (const char* plain :
       {"llama", "mistral", "qwen2", "qwen3", "granite", "olmo2", "starcoder2", "smollm3", "arcee", "ministral",
        "seed_oss", "ernie4_5", "exaone4", "helium", "gemma", "internlm3", "olmo", "nanochat"}) {
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
  const char* const kBands = R"("rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0)";  // rope_scaling of llama3
  add("apertus", "apertus", keys({R"("rope_parameters": {"rope_theta": 50000.0, )", kBands, "}"}),
      keys({R"("rope_scaling": {"type": "llama3", )", kBands, "}, \"rope_theta\": 50000.0"}));
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
  for (const char* half : {"glm", "nemotron"}) {
    add(half, half,
        R"("rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 50000.0, "rope_type": "default"})",
        keys({"\"partial_rotary_factor\": 0.5, ", kTheta}));
  }
  all.push_back({"hunyuan", family("hunyuan_v1_dense", kRope), family("hunyuan_v1_dense", kTheta)});
  all.push_back({"internlm2", family("internlm2", kRope), family("internlm2", kTheta)});
  add("phi", "phi",
      R"("rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 50000.0, "rope_type": "default"})",
      keys({"\"partial_rotary_factor\": 0.5, ", kTheta}));
  add("gpt_neox", "gpt_neox",
      R"("rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 50000.0, "rope_type": "default"})",
      R"("rotary_pct": 0.5, "rotary_emb_base": 50000)");
  add("falcon", "falcon", keys({"\"ffn_hidden_size\": 28, ", kRope}),
      keys({"\"ffn_hidden_size\": 28, \"n_layer\": 2, \"n_head\": 4, ", kTheta}));
  add("internlm3_with_biases", "internlm3", keys({"\"attention_bias\": true, \"mlp_bias\": true, ", kRope}),
      keys({"\"qkv_bias\": true, \"bias\": true, ", kTheta}));
  add("exaone4_with_windows", "exaone4", keys({kFour, kTypes, "\"sliding_window\": 8, ", kRope}),
      keys({kFour, kTypes, "\"sliding_window\": 8, \"sliding_window_pattern\": \"LG\", ", kTheta}));
  add("vaultgemma", "vaultgemma", keys({kFour, kTypes, "\"sliding_window\": 8, ", kRope}),
      keys({kFour, "\"sliding_window\": 8, ", kTheta}));
  add("qwen3_vl", "qwen3_vl_text",
      R"("rope_parameters": {"rope_theta": 50000.0, "rope_type": "default", "mrope_section": [2, 2, 2]})",
      R"("rope_theta": 50000.0, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 2, 2],
         "mrope_interleaved": true})");
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

TEST(ModelWithImages, IsItsTextModelWithTheOuterClass) {
  for (const auto& [outer, inner, name] : {std::tuple{"gemma3", "gemma3_text", "Gemma3ForConditionalGeneration"},
                                           {"gemma4", "gemma4_text", "Gemma4ForConditionalGeneration"},
                                           {"qwen3_vl", "qwen3_vl_text", "Qwen3VLForConditionalGeneration"},
                                           {"smolvlm", "llama", "SmolVLMForConditionalGeneration"},
                                           {"idefics3", "llama", "Idefics3ForConditionalGeneration"},
                                           {"llava", "llama", "LlavaForConditionalGeneration"},
                                           {"llava_next", "mistral", "LlavaNextForConditionalGeneration"},
                                           {"llava_onevision", "qwen2", "LlavaOnevisionForConditionalGeneration"},
                                           {"mistral3", "ministral3", "Mistral3ForConditionalGeneration"},
                                           {"mistral3", "mistral", "Mistral3ForConditionalGeneration"}}) {
    ModelSpec text = parse(family(inner, "\"eos_token_id\": 2, \"tie_word_embeddings\": true"));
    text.logit_softcap = inner == std::string("gemma3_text") ? 0.0f : text.logit_softcap;
    text.architecture = name;
    expect_same(parse(wrapped(outer, family(inner, "\"eos_token_id\": 2"),
                              std::string("\"tie_word_embeddings\": true, \"architectures\": [\"") + name + "\"]")),
                text);
  }
}

// As the hub's LLaVA models have them: transformers' classes know the sizes.
TEST(ModelWithImages, MayLeaveOutTheSizesOfALlamaOrMistral) {
  const ModelSpec llama = parse(wrapped("llava", R"({"model_type": "llama", "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "vocab_size": 32064})"));
  EXPECT_THAT(llama.describe(), StartsWith("llama E=4096 F=11008 L=32 H=32 G=32 D=128 V=32064 eps=1e-05 "));
  const ModelSpec mistral = parse(wrapped("llava_next", R"({"model_type": "mistral", "intermediate_size": 14336,
      "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "sliding_window": null, "vocab_size": 32064})"));
  EXPECT_THAT(mistral.describe(), StartsWith("mistral E=4096 F=14336 L=32 H=32 G=8 D=128 V=32064 eps=1e-05 "));
  EXPECT_THAT(refusal([] { parse(R"({"model_type": "llama", "vocab_size": 32064})"); }), HasSubstr("'hidden_size'"))
      << "a model by itself says its sizes";
  EXPECT_THAT(refusal([] { parse(wrapped("llava", R"({"model_type": "llama", "num_hidden_layers": 0})")); }),
              HasSubstr("'text_config.num_hidden_layers' is 0"));
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

TEST(ModelWithImages, OfQwen2MayHaveTheKeysOfItsTextBesideThoseOfItsImages) {
  const std::string keys = R"("rope_theta": 50000.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 2, 2]})";
  for (const std::string type : {"qwen2_vl", "qwen2_5_vl"}) {
    expect_same(parse(family(type, keys + ", \"vision_config\": {\"depth\": 1}, \"tie_word_embeddings\": true")),
                parse(wrapped(type, family(type + "_text", keys), "\"tie_word_embeddings\": true")));
  }
  EXPECT_THAT(refusal([] { parse("{\"model_type\": \"qwen3_vl\"}"); }), HasSubstr("'text_config' is missing"));
}

TEST(ModelWithImages, OfQwenAndSmolVlmHaveAnOutputMatrixUnlessTheySay) {
  for (const auto& [outer, inner] : {std::pair{"qwen2_vl", "qwen2_vl_text"},
                                     {"qwen2_5_vl", "qwen2_5_vl_text"},
                                     {"qwen3_vl", "qwen3_vl_text"},
                                     {"smolvlm", "llama"}}) {
    const std::string tied = "\"tie_word_embeddings\": true";
    EXPECT_FALSE(parse(wrapped(outer, family(inner, tied))).tied_head) << outer;
    EXPECT_TRUE(parse(wrapped(outer, family(inner), tied)).tied_head) << outer;
  }
}

TEST(ModelClass, MayBeThatOfOldConversionsOrOfTransformersOwnReading) {
  for (const auto& [type, name] : {std::pair{"llama", "LlamaForCausalLM"},
                                   {"llama", "LLaMAForCausalLM"},
                                   {"internlm3", "InternLM3ForCausalLM"},
                                   {"internlm3", "LlamaForCausalLM"}}) {
    EXPECT_EQ(parse(family(type, std::string("\"architectures\": [\"") + name + "\"]")).model_type, type);
  }
  for (const auto& [type, name] : {std::pair{"mistral", "LLaMAForCausalLM"}, {"internlm3", ""}, {"llama", ""}}) {
    EXPECT_THAT(refusal([&] { parse(family(type, std::string("\"architectures\": [\"") + name + "\"]")); }),
                HasSubstr("'architectures'"))
        << type;
  }
}

TEST(ModelWithImages, OfGemma3DoesNotCapItsLogits) {
  EXPECT_EQ(parse(wrapped("gemma3", family("gemma3_text", "\"final_logit_softcapping\": 30.0"))).logit_softcap, 0.0f);
}

}  // namespace
}  // namespace quire::model::spellings_test
