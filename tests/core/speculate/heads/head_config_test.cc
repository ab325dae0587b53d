#include "core/speculate/heads/head_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/core/model/tiny_checkpoint.h"
#include "tests/core/speculate/heads/tiny_head.h"

namespace quire::speculate::head_config_test {
namespace {

using ::testing::HasSubstr;

class HeadConfigTest : public ::testing::Test {
 protected:
  HeadConfigTest() {
    testing::write_target(dir_);
    files_ = model::ModelFiles::directory(dir_.path());
    target_ = model::load_config(*files_);
  }
  HeadConfig read(const std::string& text) { return parse_head_config(text, "config.json", target_); }
  std::string refusal(const std::string& text) {
    return model::testing::refusal([&] { read(text); });
  }

  model::testing::TempDir dir_;
  std::unique_ptr<model::ModelFiles> files_;
  model::ModelSpec target_;
};

const std::string kStates = R"("eagle_aux_hidden_state_layer_ids": [2, 3], )";
const std::string kLayer = R"("hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 1, "rms_norm_eps": 1e-5, "rope_theta": 5000.0)";

void expect_same(const HeadConfig& a, const HeadConfig& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.boundaries, b.boundaries);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.ffn, b.ffn);
  EXPECT_EQ(a.num_heads, b.num_heads);
  EXPECT_EQ(a.num_kv_heads, b.num_kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.rope.theta, b.rope.theta);
}

TEST_F(HeadConfigTest, OfVllmIsThatOfTheWrappedModel) {
  const HeadConfig plain = read("{" + kLayer + "}");
  EXPECT_EQ(plain.kind, HeadKind::kEagle);
  expect_same(read(R"({"model_type": "eagle", "architectures": ["EAGLEModel"], "model": {"model_type": "llama", )" +
                   kLayer + "}}"),
              plain);
  expect_same(read(R"({"model_type": "eagle", "method": "eagle3", "model": {)" + kStates + kLayer + "}}"),
              read(R"({"architectures": ["LlamaForCausalLMEagle3"], )" + kStates + kLayer + "}"));
}

TEST_F(HeadConfigTest, OfSpeculatorsIsThatOfItsLayer) {
  expect_same(read(R"({"speculators_model_type": "eagle3", "transformer_layer_config": {)" + kStates + kLayer + "}}"),
              read(R"({"architectures": ["LlamaForCausalLMEagle3"], )" + kStates + kLayer + "}"));
}

TEST_F(HeadConfigTest, IsRefusedIfItsWrapperMethodOrVocabularyIsAnother) {
  EXPECT_THAT(refusal(R"({"model": 3})"), HasSubstr("key 'model' is not an object"));
  EXPECT_THAT(refusal(R"({"transformer_layer_config": []})"),
              HasSubstr("key 'transformer_layer_config' is not an object"));
  EXPECT_THAT(refusal(R"({"method": "medusa", )" + kLayer + "}"), HasSubstr("expected \"eagle\" or \"eagle3\""));
  EXPECT_THAT(refusal(R"({"truncated_vocab_size": 8, )" + kLayer + "}"),
              HasSubstr("'truncated_vocab_size' is 8 (int64); expected the target's vocab_size"));
  EXPECT_THAT(refusal(R"({"model": {"temperature": 1, )" + kLayer + "}}"), HasSubstr("'temperature'"));
}

}  // namespace
}  // namespace quire::speculate::head_config_test
