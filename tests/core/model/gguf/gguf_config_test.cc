#include "core/model/gguf/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/gguf/gguf_files.h"
#include "tests/support/cases.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace quire::model {
namespace {

using test::GgufWriter;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::array<const char*, 32> kNames = {
    "llama",    "qwen2",    "qwen3",     "mistral3",   "gemma",    "gemma2",    "gemma3",        "phi2",
    "phi3",     "granite",  "olmo",      "olmo2",      "smollm3",  "arcee",     "seed_oss",      "exaone4",
    "ernie4_5", "nemotron", "starcoder", "starcoder2", "stablelm", "command-r", "hunyuan-dense", "cohere2",
    "chatglm",  "glm4",     "gpt2",      "gptneox",    "bloom",    "mpt",       "falcon",        "internlm2"};

constexpr std::array<const char*, 13> kMixtures = {
    "qwen2moe", "qwen3moe",     "qwen3vlmoe", "olmoe", "granitemoe",  "phimoe",   "glm4moe",
    "dots1",    "ernie4_5-moe", "gpt-oss",    "hy_v3", "hunyuan-moe", "deepseek2"};

// A key's type and value, as the file has them.
std::string stored(std::uint32_t type, auto value) {
  GgufWriter out;
  return out.put(type).put(value).bytes;
}
std::string whole(std::uint32_t value) { return stored(test::kUint32, value); }
std::string real(float value) { return stored(test::kFloat, value); }
std::string word(std::string_view value) { return GgufWriter().put(test::kString).text(value).bytes; }

using Keys = std::map<std::string, std::string>;

Keys sound_keys(const std::string& name) {
  Keys keys{{"general.architecture", word(name)}};
  const auto add = [&](const std::string& key, std::string value) { keys[name + "." + key] = std::move(value); };
  add("embedding_length", whole(64));
  add("block_count", whole(2));
  add("attention.head_count", whole(4));
  add("attention.head_count_kv", whole(name == "gpt2" || name == "bloom" ? 4 : 2));
  add("feed_forward_length", whole(256));
  add("context_length", whole(128));
  add("attention.layer_norm_rms_epsilon", real(1e-5f));
  add("attention.layer_norm_epsilon", real(1e-5f));
  add("rope.freq_base", real(1e4f));
  add("rope.dimension_count", whole(16));
  if (name == "gemma2" || name == "gemma3" || name == "cohere2") add("attention.sliding_window", whole(32));
  if (std::ranges::find(kMixtures, name) != kMixtures.end() || name == "minimax-m2") {
    add("expert_count", whole(4));
    add("expert_used_count", whole(2));
    add("expert_feed_forward_length", whole(32));
  }
  if (name == "deepseek2") {
    add("attention.kv_lora_rank", whole(32));
    add("attention.key_length", whole(48));  // of a row in the cache
    add("attention.value_length", whole(32));
    add("attention.key_length_mla", whole(24));
    add("attention.value_length_mla", whole(12));
  }
  return keys;
}

// Keys that only some files have.
const std::vector<std::string> kRare = {"attention.key_length",
                                        "attention.key_length_swa",
                                        "attention.shared_kv_layers",
                                        "embedding_length_per_layer_input",
                                        "altup.num_inputs",
                                        "altup.active_idx",
                                        "activation_sparsity_scale",
                                        "rope.freq_base_swa",
                                        "attention.value_length",
                                        "attention.key_length_mla",
                                        "attention.value_length_mla",
                                        "attention.kv_lora_rank",
                                        "attention.q_lora_rank",
                                        "attention.sliding_window",
                                        "attention.sliding_window_pattern",
                                        "attention.clamp_kqv",
                                        "attention.max_alibi_bias",
                                        "attention.scale",
                                        "attention.temperature_scale",
                                        "attn_logit_softcapping",
                                        "final_logit_softcapping",
                                        "embedding_scale",
                                        "residual_scale",
                                        "logit_scale",
                                        "rope.freq_base_swa",
                                        "rope.scaling.type",
                                        "rope.scaling.factor",
                                        "rope.scaling.attn_factor",
                                        "rope.scaling.yarn_log_multiplier",
                                        "rope.scaling.yarn_beta_fast",
                                        "rope.scaling.original_context_length",
                                        "use_parallel_residual",
                                        "expert_count",
                                        "expert_used_count",
                                        "expert_feed_forward_length",
                                        "expert_gating_func",
                                        "expert_weights_norm",
                                        "expert_weights_scale",
                                        "expert_group_count",
                                        "expert_group_used_count",
                                        "interleave_moe_layer_step",
                                        "leading_dense_block_count",
                                        "nextn_predict_layers"};

std::string any_value(std::mt19937& draw) {
  switch (draw() % 14) {
    case 0:
      return whole(0);
    case 1:
      return whole(1);
    case 2:
      return whole(3);
    case 3:
      return whole(1u << 31);
    case 4:
      return whole(std::numeric_limits<std::uint32_t>::max());
    case 5:
      return stored(test::kUint64, std::uint64_t{1} << 63);
    case 6:
      return stored(test::kInt64, std::int64_t{-1});
    case 7:
      return real(0.0f);
    case 8:
      return real(-1.0f);
    case 9:
      return real(std::numeric_limits<float>::quiet_NaN());
    case 10:
      return real(std::numeric_limits<float>::infinity());
    case 11:
      return word(draw() % 2 == 0 ? "yarn" : "linear");
    case 12:
      return stored(test::kBool, std::uint8_t{1});
    default:
      return GgufWriter().put(test::kArray).put(test::kUint32).put(std::uint64_t{1}).put(2u).bytes;
  }
}

// Every tensor has `numbers` numbers of `each`.
std::string file_of(const Keys& keys, const std::vector<std::string>& tensors, std::uint64_t numbers = 8,
                    float each = 0.0f) {
  GgufWriter file;
  file.head(1 + tensors.size(), keys.size());
  for (const auto& [key, value] : keys) file.text(key).bytes += value;
  constexpr std::uint64_t kF32 = 0;
  std::uint64_t offset = 0;
  file.tensor("token_embd.weight", {64, 8}, kF32, offset);
  offset += 64 * 8 * sizeof(float);
  for (const std::string& tensor : tensors) {
    file.tensor(tensor, {numbers}, kF32, offset);
    offset += (numbers * sizeof(float) + 31) / 32 * 32;
  }
  file.pad();
  for (std::uint64_t i = 0; i < offset / sizeof(float); ++i) file.put(each);
  return file.bytes;
}

ModelSpec read(const test::TemporaryFolder& folder, const std::string& bytes) {
  folder.write("x.gguf", bytes);
  const std::unique_ptr<ModelFiles> files = open_model_files(folder.path_of("x.gguf"));
  return load_config(*files);
}

std::string refusal(const Keys& keys, const std::string& file = "") {
  const test::TemporaryFolder folder;
  try {
    read(folder, file.empty() ? file_of(keys, {}) : file);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufConfig, EveryArchitectureIsRead) {
  const test::TemporaryFolder folder;
  for (const char* name : kNames) {
    Keys keys = sound_keys(name);
    if (name == std::string_view("mpt")) keys["mpt.attention.max_alibi_bias"] = real(8.0f);
    const ModelSpec spec = read(folder, file_of(keys, {}));
    EXPECT_EQ(spec.num_layers(), 2u) << name;
    EXPECT_EQ(spec.hidden, 64u) << name;
    EXPECT_EQ(spec.layers.front().attention.head_dim, 16u) << name;
    EXPECT_EQ(spec.names.layers, "blk") << name;
  }
}

// eos_token_id of a vocabulary of these tokens, all of them special.
std::string ends_of(const std::vector<std::string>& tokens) {
  const test::TemporaryFolder folder;
  Keys keys = sound_keys("llama");
  GgufWriter texts;
  GgufWriter types;
  texts.put(std::uint32_t{9}).put(std::uint32_t{8}).put(std::uint64_t{tokens.size()});
  types.put(std::uint32_t{9}).put(std::uint32_t{5}).put(std::uint64_t{tokens.size()});
  for (const std::string& token : tokens) {
    texts.text(token);
    types.put(std::int32_t{3});
  }
  keys["tokenizer.ggml.tokens"] = texts.bytes;
  keys["tokenizer.ggml.token_type"] = types.bytes;
  std::string out;
  for (const TokenId id : read(folder, file_of(keys, {})).eos)
    out += (out.empty() ? "" : " ") + tokens[static_cast<std::size_t>(id)];
  return out;
}

TEST(GgufConfig, TokensThatEndAnAnswerAreKnownByTheirTexts) {
  EXPECT_EQ(ends_of({"a", "<|im_end|>", "b", "<|endoftext|>"}), "<|im_end|> <|endoftext|>");
  EXPECT_EQ(ends_of({"<|end|>", "<|endoftext|>"}), "<|end|> <|endoftext|>");
  // A message of gpt-oss ends with <|end|>, and the answer goes on.
  EXPECT_EQ(ends_of({"<|end|>", "<|return|>", "<|call|>"}), "<|return|> <|call|>");
  EXPECT_EQ(ends_of({"<|end|>", "<|return|>"}), "<|end|> <|return|>");
  EXPECT_EQ(ends_of({"<|flush|>", "<|end|>", "<|calls|>"}), "<|flush|> <|calls|>");
  // Gemma 4 has </s> among its words.
  EXPECT_EQ(ends_of({"</s>", "<|tool_response>", "<turn|>"}), "<|tool_response> <turn|>");
  EXPECT_EQ(ends_of({"</s>", "<turn|>"}), "</s> <turn|>");
  EXPECT_EQ(ends_of({"<|file_sep|>", "<|fim_pad|>"}), "<|file_sep|> <|fim_pad|>");
}

TEST(GgufConfig, NumbersOfLayersAreOneForAllOrOneForEach) {
  const test::TemporaryFolder folder;
  const auto list = [](std::initializer_list<std::uint32_t> numbers) {
    GgufWriter out;
    out.put(std::uint32_t{9}).put(std::uint32_t{4}).put(std::uint64_t{numbers.size()});  // an array of uint32
    for (const std::uint32_t number : numbers) out.put(number);
    return out.bytes;
  };
  Keys keys = sound_keys("llama");
  keys["llama.feed_forward_length"] = list({96, 96});
  EXPECT_EQ(read(folder, file_of(keys, {})).layers.front().mlp.width, 96u);
  for (const auto& [numbers, why] : {std::pair{list({96, 80}), "differs from layer to layer"},
                                     {list({96, 96, 96}), "has 3 numbers; expected one for each of 2 layers"}}) {
    keys["llama.feed_forward_length"] = numbers;
    EXPECT_THAT(refusal(keys), HasSubstr(why));
  }
  keys = sound_keys("llama");
  keys["llama.block_count"] = whole(4097);
  EXPECT_THAT(refusal(keys), HasSubstr("is 4097; at most 4096"));
}

TEST(GgufConfig, SizesThatNothingCanBeDividedByAreRefusedByKey) {
  Keys keys = sound_keys("llama");
  keys["llama.attention.head_count"] = whole(0);
  EXPECT_THAT(refusal(keys), HasSubstr("key 'llama.attention.head_count' is 0"));
  keys = sound_keys("llama");
  keys["llama.embedding_length"] = whole(3);
  EXPECT_THAT(refusal(keys), HasSubstr("key 'llama.embedding_length' is too small for the heads"));
  keys = sound_keys("gemma2");
  keys.erase("gemma2.attention.head_count");
  EXPECT_THAT(refusal(keys), AllOf(HasSubstr("x.gguf"), HasSubstr("key 'gemma2.attention.head_count' is missing")));
}

TEST(GgufConfig, FrequenciesHaveADivisorForEachPairThatTurns) {
  const Keys keys = sound_keys("llama");
  const auto with = [&](std::uint64_t numbers, float value) {
    return refusal(keys, file_of(keys, {"rope_freqs.weight"}, numbers, value));
  };
  EXPECT_THAT(with(7, 1.0f), HasSubstr("tensor 'rope_freqs.weight' has 7 numbers; expected 8"));
  EXPECT_EQ(with(8, 1.0f), "");
  EXPECT_THAT(with(9, 1.0f), HasSubstr("tensor 'rope_freqs.weight' has 9 numbers; expected 8"));
  EXPECT_THAT(with(8, 0.0f), HasSubstr("tensor 'rope_freqs.weight' has a number outside [1e-6, 1e9]"));
  EXPECT_THAT(with(8, std::numeric_limits<float>::infinity()), HasSubstr("has a number that is not finite"));
}

TEST(GgufConfig, NumbersOfApertusAreOneForEachLayer) {
  const auto array = [](std::vector<float> values) {
    GgufWriter out;
    out.put(test::kArray).put(test::kFloat).put(std::uint64_t{values.size()});
    for (const float value : values) out.put(value);
    return out.bytes;
  };
  Keys keys = sound_keys("apertus");
  EXPECT_THAT(refusal(keys), HasSubstr("key 'xielu.alpha_p' has 0 numbers; expected one for each of 2 layers"));
  for (const char* key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"}) keys[key] = array({0.5f, 2.0f});
  EXPECT_EQ(refusal(keys), "");
  keys["xielu.beta"] = array({0.5f, 2.0f, 1.0f});
  EXPECT_THAT(refusal(keys), HasSubstr("key 'xielu.beta' has 3 numbers"));
  keys["xielu.beta"] = array({0.5f, std::numeric_limits<float>::infinity()});
  EXPECT_THAT(refusal(keys), HasSubstr("key 'xielu.beta' is not finite"));
}

TEST(GgufConfig, AFileOfOlmo2WithAWindowIsOlmo3) {
  const test::TemporaryFolder folder;
  Keys keys = sound_keys("olmo2");
  EXPECT_EQ(read(folder, file_of(keys, {})).model_type, "olmo2");
  keys["olmo2.attention.sliding_window"] = whole(32);
  const ModelSpec spec = read(folder, file_of(keys, {}));
  EXPECT_EQ(spec.model_type, "olmo3");
  EXPECT_EQ(spec.layers.front().attention.window, 32u);
}

TEST(GgufConfig, AHeadThatTurnsAsAWholeDoesSoWhereTheFamilyTurnsAPart) {
  const test::TemporaryFolder folder;
  for (const char* name : {"glm4", "stablelm", "gptneox", "phi2", "nemotron"}) {
    const ModelSpec spec = read(folder, file_of(sound_keys(name), {}));
    EXPECT_EQ(spec.ropes.front().rotary_dims(16), 16u) << name;
    Keys keys = sound_keys(name);
    keys[std::string(name) + ".rope.dimension_count"] = whole(4);
    EXPECT_EQ(read(folder, file_of(keys, {})).ropes.front().rotary_dims(16), 4u) << name;
  }
}

TEST(GgufConfig, ArchitecturesWithExpertsAreRead) {
  const test::TemporaryFolder folder;
  for (const char* name : kMixtures) {
    const ModelSpec spec = read(folder, file_of(sound_keys(name), {"blk.1.ffn_gate_inp.weight"}));
    const MixtureSpec* mixture = spec.mixture();
    ASSERT_NE(mixture, nullptr) << name;
    EXPECT_EQ(mixture->rule.num_experts, 4u) << name;
    EXPECT_EQ(mixture->rule.top_k, 2u) << name;
    EXPECT_EQ(mixture->expert.width, 32u) << name;
    EXPECT_EQ(spec.names.experts.router, "ffn_gate_inp") << name;
  }
}

TEST(GgufConfig, LatentsOfDeepseek2HaveTheSizesOfTheirOwnKeys) {
  const test::TemporaryFolder folder;
  Keys keys = sound_keys("deepseek2");
  const ModelSpec spec = read(folder, file_of(keys, {}));
  const LatentSpec& latent = *spec.layers.front().attention.latent;
  EXPECT_EQ(latent.rank, 32u);
  EXPECT_EQ(latent.nope_dim, 8u);
  EXPECT_EQ(latent.rope_dim, 16u);
  EXPECT_EQ(latent.value_dim, 12u);
  EXPECT_EQ(latent.query_rank, 0u);
  EXPECT_EQ(spec.model_type, "deepseek_v2");
  keys["deepseek2.expert_gating_func"] = whole(2);
  EXPECT_THAT(refusal(keys), HasSubstr("key 'deepseek2.expert_group_count' is missing"));
  keys["deepseek2.expert_group_count"] = keys["deepseek2.expert_group_used_count"] = whole(1);
  EXPECT_EQ(read(folder, file_of(keys, {})).model_type, "deepseek_v3");
  for (const std::uint32_t length : {15u, 16u}) {
    keys["deepseek2.attention.key_length_mla"] = whole(length);
    EXPECT_THAT(refusal(keys), HasSubstr("key 'deepseek2.attention.key_length_mla' is no more than what turns of it"));
  }
  keys["deepseek2.attention.key_length_mla"] = whole(18);
  EXPECT_EQ(refusal(keys), "");
  for (const char* key : {"kv_lora_rank", "key_length_mla", "value_length_mla"}) {
    Keys without = sound_keys("deepseek2");
    without.erase(std::string("deepseek2.attention.") + key);
    EXPECT_THAT(refusal(without), HasSubstr(std::string(key) + "' is missing"));
  }
}

TEST(GgufConfig, ExpertsThatAnArchitectureDoesNotHaveAreRefused) {
  Keys keys = sound_keys("qwen3");
  keys["qwen3.expert_count"] = whole(4);
  EXPECT_THAT(refusal(keys), HasSubstr("key 'qwen3.expert_count' says that this model has experts"));
  keys["qwen3.expert_count"] = whole(0);
  EXPECT_EQ(refusal(keys), "");
  for (const char* key : {"expert_count", "expert_used_count"}) {
    keys = sound_keys("qwen3moe");
    keys.erase(std::string("qwen3moe.") + key);
    EXPECT_THAT(refusal(keys), HasSubstr(std::string("key 'qwen3moe.") + key + "' is missing"));
  }
}

TEST(GgufConfig, LlamaWithExpertsIsMixtral) {
  const test::TemporaryFolder folder;
  Keys keys = sound_keys("llama");
  EXPECT_EQ(read(folder, file_of(keys, {})).mixture(), nullptr);
  keys["llama.expert_count"] = whole(8);
  keys["llama.expert_used_count"] = whole(2);
  const ModelSpec spec = read(folder, file_of(keys, {}));
  EXPECT_EQ(spec.model_type, "mixtral");
  EXPECT_EQ(spec.mixture()->expert.width, 256u);
  EXPECT_TRUE(spec.mixture()->rule.normed);
}

TEST(GgufConfig, AnotherGatingThanTheArchitecturesIsRefused) {
  const auto with = [](std::uint32_t gating) {
    Keys keys = sound_keys("qwen3moe");
    keys["qwen3moe.expert_gating_func"] = whole(gating);
    return refusal(keys);
  };
  EXPECT_EQ(with(0), "");
  EXPECT_EQ(with(1), "");
  for (const std::uint32_t gating : {2u, 3u, 4u}) {
    EXPECT_THAT(with(gating), HasSubstr("is " + std::to_string(gating) + "; expected 1 for this architecture"));
  }
}

TEST(GgufConfig, BlocksThatProposeDraftsAreNoLayers) {
  const test::TemporaryFolder folder;
  Keys keys = sound_keys("glm4moe");
  for (const std::uint32_t drafting : {0u, 1u}) {
    keys["glm4moe.nextn_predict_layers"] = whole(drafting);
    const ModelSpec spec = read(folder, file_of(keys, {}));
    EXPECT_EQ(spec.num_layers(), 2u - drafting);
    const auto skipped = std::ranges::count(spec.names.skipped, "blk.1.*");
    EXPECT_EQ(skipped, std::ptrdiff_t{drafting});
  }
  keys["glm4moe.nextn_predict_layers"] = whole(3);
  EXPECT_THAT(refusal(keys), HasSubstr("key 'glm4moe.nextn_predict_layers' is 3; the model has 2 blocks"));
}

TEST(GgufConfig, LayersWithoutARouterAreDense) {
  const test::TemporaryFolder folder;
  for (const char* name : {"qwen3moe", "qwen2moe", "glm4moe", "dots1", "hy_v3", "ernie4_5-moe"}) {
    const ModelSpec spec = read(folder, file_of(sound_keys(name), {"blk.1.ffn_gate_inp.weight"}));
    EXPECT_FALSE(spec.layers[0].experts) << name;
    EXPECT_TRUE(spec.layers[1].experts) << name;
  }
}

TEST(GgufConfig, SharedExpertsAreWholeOnes) {
  const auto with = [&](std::uint64_t rows) {
    return refusal(sound_keys("glm4moe"),
                   file_of(sound_keys("glm4moe"), {"blk.1.ffn_gate_inp.weight", "blk.1.ffn_up_shexp.weight"}, rows));
  };
  EXPECT_THAT(with(63),
              HasSubstr("tensor 'blk.1.ffn_up_shexp.weight' has 63 rows; expected a multiple of an expert's 32"));
  EXPECT_EQ(with(64), "");
  EXPECT_THAT(with(65), HasSubstr("has 65 rows"));
}

TEST(GgufConfig, AnyMetadataIsReadOrRefused) {
  std::mt19937 draw(1);
  const test::TemporaryFolder folder;
  const std::uint32_t rounds = quire::testing::cases(60);
  std::vector<const char*> names(kNames.begin(), kNames.end());
  names.insert(names.end(), kMixtures.begin(), kMixtures.end());
  names.insert(names.end(), {"gemma3n", "gemma4", "qwen2vl", "qwen3vl", "minimax-m2"});
  for (const char* name : names) {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      Keys keys = sound_keys(name);
      std::vector<std::string> known;
      for (const auto& [key, value] : keys) known.push_back(key);
      for (unsigned change = 0; change < 1 + draw() % 3; ++change) {
        const bool rare = draw() % 2 == 0;
        const std::string key =
            rare ? std::string(name) + "." + kRare[draw() % kRare.size()] : known[1 + draw() % (known.size() - 1)];
        if (draw() % 8 == 0) {
          keys.erase(key);
        } else {
          keys[key] = any_value(draw);
        }
      }
      std::vector<std::string> tensors;
      for (const char* tensor :
           {"blk.0.attn_q.bias", "blk.0.attn_norm_2.weight", "blk.0.laurel_l.weight", "blk.0.attn_qkv.weight",
            "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight", "blk.0.ffn_gate_inp.weight",
            "blk.1.ffn_gate_inp.weight", "blk.1.ffn_up_shexp.weight", "blk.1.ffn_gate_up_exps.weight"}) {
        if (draw() % 3 == 0) tensors.emplace_back(tensor);
      }
      try {
        read(folder, file_of(keys, tensors));
      } catch (const StartError&) {
      }
    }
  }
}

}  // namespace
}  // namespace quire::model
