#include "app/model/planned_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"
#include "tests/core/model/family_configs.h"
#include "tests/support/temporary_folder.h"

namespace quire::app {
namespace {

using model::Checkpoint;
using model::ModelFiles;
using model::testing::family;
using model::testing::kExperts;

struct Planned {
  explicit Planned(const std::string& config) {
    folder.write("config.json", config);
    files = ModelFiles::directory(folder.path());
    stated = model::load_config(*files);
  }
  Checkpoint checkpoint() const { return planned_checkpoint(stated, *files); }

  test::TemporaryFolder folder;
  std::unique_ptr<ModelFiles> files;
  model::ModelSpec stated;
};

TEST(PlannedCheckpoint, HasTheTensorsThatTheModelIsCheckedFor) {
  for (const std::string& config : {family("llama"), family("qwen3_moe", kExperts), family("gemma3_text"),
                                    family("granitemoe", R"("num_local_experts": 3,
         "num_experts_per_tok": 2)"),
                                    family("gpt_oss", R"("num_local_experts": 3, "num_experts_per_tok": 2)")}) {
    const Planned planned(config);
    const Checkpoint checkpoint = planned.checkpoint();
    EXPECT_NO_THROW(model::check_weights(model::fitted(planned.stated, checkpoint), checkpoint)) << config;
    EXPECT_EQ(checkpoint.bytes(), 2 * checkpoint.num_parameters()) << config;
  }
}

TEST(PlannedCheckpoint, HasTheTypesOfTheConfig) {
  const auto dtype_of = [](const std::string& keys) {
    return Planned(family("llama", keys)).checkpoint().find("lm_head.weight")->dtype;
  };
  EXPECT_EQ(dtype_of(R"("tie_word_embeddings": false)"), "BF16");
  EXPECT_EQ(dtype_of(R"("dtype": "float32")"), "F32");
  EXPECT_EQ(dtype_of(R"("torch_dtype": "float16")"), "F16");
  EXPECT_EQ(dtype_of(R"("dtype": "bfloat16", "torch_dtype": "float16")"), "BF16");
  EXPECT_THROW(dtype_of(R"("dtype": "int8")"), StartError);
}

TEST(PlannedCheckpoint, ExpertsOfMxfp4AreBlocksAlongTheInputs) {
  constexpr const char* kKeys = R"("num_local_experts": 3, "num_experts_per_tok": 2, "intermediate_size": 64,
    "quantization_config": {"quant_method": "mxfp4"})";
  const Planned planned(family("gpt_oss", kKeys));
  const Checkpoint checkpoint = planned.checkpoint();
  EXPECT_NO_THROW(model::check_weights(model::fitted(planned.stated, checkpoint), checkpoint));
  const model::Tensor& down = *checkpoint.find("model.layers.0.mlp.experts.down_proj");
  EXPECT_EQ(down.dtype, "MXFP4");
  EXPECT_EQ(down.shape, (std::vector<std::uint64_t>{3, 32, 64}));
  EXPECT_EQ(down.bytes(), 3u * 32 * 64 / 32 * 17);
  EXPECT_EQ(checkpoint.find("model.layers.0.mlp.experts.down_proj_bias")->dtype, "BF16");
  EXPECT_EQ(checkpoint.find("model.layers.0.self_attn.q_proj.weight")->dtype, "BF16");
}

TEST(PlannedCheckpoint, IsForFoldersWithoutWeightsOfAnyFormat) {
  const test::TemporaryFolder folder;
  const auto there = [&] { return has_weights(*ModelFiles::directory(folder.path())); };
  folder.write("config.json", family("llama"));
  EXPECT_FALSE(there());
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    const test::TemporaryFolder other;
    other.write("config.json", family("llama"));
    other.write(name, "x");
    EXPECT_TRUE(has_weights(*ModelFiles::directory(other.path()))) << name;
  }
}

}  // namespace
}  // namespace quire::app
