// Gemma 4's config.json: heads of full layers in both spellings, K and V that layers share, embeddings per layer, and
// what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/arch/config.h"
#include "core/model/rope/rope.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::gemma4_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::family;
using ::testing::HasSubstr;
using testing::refusal;

const char* const kSix = R"("num_hidden_layers": 6, "hidden_size_per_layer_input": 0, "layer_types": [
    "sliding_attention", "full_attention", "sliding_attention",
    "full_attention", "sliding_attention", "full_attention"])";

ModelSpec parse(const std::string& extra) {
  return parse_config(family("gemma4_text", std::string(kSix) + (extra.empty() ? "" : ", " + extra)),
                      "dir/config.json");
}

template <typename Value>
std::vector<std::uint32_t> of_layers(const ModelSpec& spec, const Value& value) {
  std::vector<std::uint32_t> values;
  for (const LayerSpec& layer : spec.layers) values.push_back(value(layer));
  return values;
}
std::vector<std::uint32_t> head_dims(const ModelSpec& spec) {
  return of_layers(spec, [](const LayerSpec& layer) { return layer.attention.head_dim; });
}
std::vector<std::uint32_t> kv_heads(const ModelSpec& spec) {
  return of_layers(spec, [](const LayerSpec& layer) { return layer.attention.num_kv_heads; });
}

TEST(Gemma4, HasHeadsOfFullLayersInBothSpellings) {
  const ModelSpec hub = parse(R"("global_head_dim": 20, "num_global_key_value_heads": 1, "attention_k_eq_v": true)");
  const ModelSpec now = parse(R"("attention_k_eq_v": true, "per_layer_config": {
      "1": {"head_dim": 20, "num_key_value_heads": 1}, "3": {"head_dim": 20, "num_key_value_heads": 1},
      "5": {"head_dim": 20, "num_key_value_heads": 1}})");
  EXPECT_THAT(head_dims(hub), ElementsAre(12, 20, 12, 20, 12, 20));
  EXPECT_THAT(kv_heads(hub), ElementsAre(2, 1, 2, 1, 2, 1));
  EXPECT_EQ(hub.layers, now.layers);
  EXPECT_EQ(hub.describe(), now.describe());
}

TEST(Gemma4, HasHeadsOf512InFullLayersWithoutAKey) {
  EXPECT_THAT(head_dims(parse("")), ElementsAre(12, 512, 12, 512, 12, 512));
  EXPECT_THAT(kv_heads(parse("\"num_global_key_value_heads\": 1")), Each(2u)) << "only with attention_k_eq_v";
}

TEST(Gemma4, TakesVFromTheProductOfKInFullLayersOnly) {
  const ModelSpec spec = parse("\"attention_k_eq_v\": true");
  EXPECT_THAT(of_layers(spec, [](const LayerSpec& layer) { return layer.attention.v_is_k ? 1 : 0; }),
              ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(Gemma4, EndsWithAFullLayerWhateverTheKeySays) {
  const ModelSpec spec = parse_config(
      family("gemma4_text", R"("layer_types": ["sliding_attention", "sliding_attention"], "sliding_window": 9)"), "c");
  EXPECT_THAT(spec.windows(), ElementsAre(9, 0));
}

TEST(Gemma4, SharesKAndVOfTheLastEarlierLayerOfTheSameKind) {
  const ModelSpec spec = parse(R"("num_kv_shared_layers": 3, "use_double_wide_mlp": true, "global_head_dim": 20)");
  const auto source = [](const LayerSpec& layer) { return layer.attention.kv_source.value_or(99); };
  EXPECT_THAT(of_layers(spec, source), ElementsAre(99, 99, 99, 1, 2, 1));
  EXPECT_THAT(of_layers(spec, [](const LayerSpec& layer) { return layer.mlp.width; }),
              ElementsAre(28, 28, 28, 56, 56, 56));
  EXPECT_FALSE(spec.layers[3].attention.k_norm || spec.layers[3].attention.v_norm);
  EXPECT_TRUE(spec.layers[3].attention.q_norm);
  const backend::KvShape shape = spec.kv_shape(16, 1, backend::KvType::kF32);
  ASSERT_EQ(shape.num_layers(), 3u);
  EXPECT_EQ(shape.layers[1].head_dim, 20u);
  EXPECT_EQ(spec.kv_layer(2), 2u);
  EXPECT_EQ(spec.kv_layer(3), 1u);
  EXPECT_EQ(spec.kv_layer(4), 2u);
}

TEST(Gemma4, HasEmbeddingsPerLayerOfWidth256WithoutAKey) {
  const ModelSpec spec = parse_config(family("gemma4_text"), "c");
  ASSERT_TRUE(spec.per_layer);
  EXPECT_EQ(spec.per_layer->width, 256u);
  EXPECT_EQ(spec.per_layer->vocab, 262144u);
  EXPECT_FALSE(parse("").per_layer);
}

TEST(Gemma4, TurnsTheFirstQuarterOfThePairsOfAWholeHead) {
  const ModelSpec spec = parse("\"global_head_dim\": 32");
  ASSERT_EQ(spec.ropes.size(), 2u);
  EXPECT_EQ(spec.ropes[0].kind, RopeKind::kProportional);
  const RopeFrequencies full = rope_frequencies(spec.ropes[0], 32);
  ASSERT_EQ(full.inverse.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) {
    const auto expected = static_cast<float>(i < 4 ? std::pow(1e6, -2.0 * static_cast<double>(i) / 32) : 0.0);
    EXPECT_NEAR(full.inverse[i], expected, 1e-6f * expected) << i;
  }
  EXPECT_EQ(spec.ropes[1].kind, RopeKind::kDefault);
  EXPECT_EQ(spec.ropes[1].theta, 1e4);
}

TEST(Gemma4, TurnsAllPairsIfItsSettingsNameNoPart) {
  const ModelSpec spec = parse(R"("rope_parameters": {"full_attention": {"rope_type": "proportional", "factor": 2.0},
                                                      "sliding_attention": {"rope_theta": 5e3}})");
  EXPECT_EQ(spec.ropes[0].rotary_fraction, 1.0);
  EXPECT_EQ(spec.ropes[0].theta, 1e6);
  const RopeFrequencies full = rope_frequencies(spec.ropes[0], 8);
  EXPECT_EQ(full.inverse[0], 0.5f);
  EXPECT_GT(full.inverse[3], 0.0f);
  EXPECT_EQ(spec.ropes[1].theta, 5e3);
}

TEST(Gemma4, DescribesWhatItsLayersHave) {
  const std::string text = parse(R"("num_kv_shared_layers": 2, "attention_k_eq_v": true, "sliding_window": 9,
                                    "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 40)")
                               .describe();
  for (const char* part : {"v_norm=", "v=k", "kv_of=2", "kv_of=3", "scaled", "per_layer=6:40", "proportional(",
                           "D=12*1,512*1,12*1,512*1,12*1,512*1"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Gemma4, RefusesWhatItsDecoderHasNot) {
  const auto message = [](const char* extra) { return refusal([&] { parse(extra); }); };
  EXPECT_THAT(message("\"enable_moe_block\": true"), HasSubstr("'num_experts'"));
  EXPECT_THAT(message("\"use_bidirectional_attention\": \"all\""), HasSubstr("'use_bidirectional_attention'"));
  EXPECT_THAT(message("\"global_head_dim\": 21"),
              HasSubstr("'global_head_dim' is 21 (int64); expected an even number"));
  EXPECT_THAT(message("\"global_head_dim\": 1026"), HasSubstr("'global_head_dim'"));
  EXPECT_THAT(message("\"attention_k_eq_v\": true, \"num_global_key_value_heads\": 3"),
              HasSubstr("expected a divisor of num_attention_heads = 4"));
  EXPECT_THAT(message("\"num_kv_shared_layers\": 5"), HasSubstr("'num_kv_shared_layers' is 5"));
  EXPECT_THAT(message("\"num_kv_shared_layers\": 6"), HasSubstr("'num_kv_shared_layers'"));
  EXPECT_THAT(message("\"hidden_size_per_layer_input\": 6, \"vocab_size_per_layer_input\": 29"),
              HasSubstr("'vocab_size_per_layer_input'"));
  EXPECT_EQ(message("\"hidden_size_per_layer_input\": 6, \"vocab_size_per_layer_input\": 30"), "");
}

}  // namespace
}  // namespace quire::model::gemma4_test
