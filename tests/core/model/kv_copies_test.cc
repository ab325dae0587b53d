// Copies of kv heads, one for each tensor-parallel rank.
#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "core/model/decoder.h"
#include "tests/core/cpu/rig.h"
#include "tests/core/cpu/tiny_decoder.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::kv_copies_test {
namespace {

using cpu::test::make_step;
using cpu::test::OwnedBatch;
using cpu::test::Prompts;
using cpu::test::same_bits;
using testing::family;

// Logits of a prompt of 19 tokens, as computed on the CPU, with a kv head or more for each of `num_ranks` ranks.
std::vector<float> logits(const ModelSpec& config, const std::vector<testing::TestTensor>& tensors,
                          std::uint32_t num_ranks, std::optional<backend::Format> quantize = std::nullopt) {
  const testing::TempDir dir;
  dir.write("model.safetensors", testing::safetensors_file(tensors));
  const auto files = ModelFiles::directory(dir.path());
  ModelSpec copied = config;
  copied.copy_kv_heads(num_ranks);
  const auto ops = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = 32});
  const Decoder decoder(*ops, copied, *files, 64, {.quantize = quantize});
  const auto cache = ops->make_kv(copied.kv_shape(16, 4, backend::KvType::kF32));
  Workspace workspace = decoder.make_workspace(32, 32, {});
  const std::uint32_t lengths[] = {19};
  const std::uint32_t all[] = {0};
  OwnedBatch batch = make_step(Prompts(lengths, 16), 0, 19, 16, all);
  for (TokenId& token : batch.tokens) token %= static_cast<TokenId>(config.vocab);
  decoder.forward(batch.view(), *cache, workspace);
  std::vector<backend::Choice> choices(batch.logits_rows.size());
  ops->collect(choices);
  return cpu::test::read(*ops, *workspace.logits, static_cast<std::uint32_t>(choices.size()));
}

TEST(CopiesOfKvHeads, ChangeNoBitOfAnyFamilysLogits) {
  const std::pair<const char*, const char*> families[] = {
      {"llama", ""},
      {"qwen2", ""},
      {"qwen3", ""},
      {"phi3", R"("pad_token_id": 0)"},
      {"glm4", R"("rope_theta": 10000.0, "partial_rotary_factor": 0.5)"},
      {"cohere", R"("use_qk_norm": true)"},
      {"stablelm", R"("qk_layernorm": true, "use_qkv_bias": true, "partial_rotary_factor": 0.5)"},
      {"gemma3_text", ""},
      {"internlm2", ""},
      {"gpt_bigcode", R"("n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64)"},
      {"hunyuan_v1_dense", ""},
      {"nanochat", ""},
      {"bitnet", R"("head_dim": 8)"},
      {"phi", R"("qk_layernorm": true)"},
      {"falcon", R"("new_decoder_architecture": true, "num_kv_heads": 2, "bias": true, "alibi": false)"},
      {"gemma4_text", R"("layer_types": ["sliding_attention", "full_attention"], "global_head_dim": 16,
          "hidden_size_per_layer_input": 0, "attention_k_eq_v": true, "num_global_key_value_heads": 1)"}};
  for (const auto& [model_type, extra] : families) {
    const ModelSpec config = parse_config(family(model_type, extra), "config.json");
    const std::uint32_t heads = config.layers.front().attention.num_heads;
    ModelSpec copied = config;
    copied.copy_kv_heads(heads);
    ASSERT_EQ(copied.layers.back().attention.num_kv_heads, heads) << model_type;
    const std::vector<testing::TestTensor> tensors = testing::fitting_tensors(config);
    for (const auto quantize :
         std::initializer_list<std::optional<backend::Format>>{std::nullopt, backend::Format::kInt8}) {
      EXPECT_TRUE(same_bits(logits(config, tensors, heads, quantize), logits(config, tensors, 1, quantize)))
          << model_type;
    }
  }
}

TEST(CopiesOfKvHeads, AreMadeOnlyWhereEveryRankThenReadsOne) {
  const ModelSpec config = parse_config(family("llama"), "config.json");
  const AttentionLayer& attention = config.layers.front().attention;
  ASSERT_EQ(attention.num_heads, 4u);
  ASSERT_EQ(attention.num_kv_heads, 2u);
  struct Case {
    std::uint32_t ranks, kv_heads, copies;
  };
  for (const auto& [ranks, kv_heads, copies] : {Case{1, 2, 1}, {2, 2, 1}, {3, 2, 1}, {4, 4, 2}, {8, 2, 1}}) {
    ModelSpec copied = config;
    copied.copy_kv_heads(ranks);
    for (const LayerSpec& layer : copied.layers) {
      EXPECT_EQ(layer.attention.num_kv_heads, kv_heads) << ranks;
      EXPECT_EQ(layer.attention.kv_copies, copies) << ranks;
    }
    EXPECT_EQ(copied.kv_shape(16, 1, backend::KvType::kF32).most_kv_heads(), kv_heads);
  }
}

TEST(CopiesOfKvHeads, AreNotMadeUnderANormOverAllOfK) {
  const ModelSpec config = parse_config(family("olmo2"), "config.json");
  ModelSpec copied = config;
  copied.copy_kv_heads(config.layers.front().attention.num_heads);
  EXPECT_EQ(copied.layers, config.layers);
}

}  // namespace
}  // namespace quire::model::kv_copies_test
