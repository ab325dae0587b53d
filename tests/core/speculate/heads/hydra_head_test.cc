#include "core/speculate/heads/hydra_head.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "tests/core/speculate/heads/plain_hydra.h"
#include "tests/core/speculate/heads/tiny_head.h"

namespace quire::speculate::hydra_head_test {
namespace {

using model::testing::refusal;
using model::testing::replaced;
using model::testing::TestTensor;
using testing::kHydraMlp;
using testing::kHydraPrefix;
using testing::kTinyHidden;
using testing::PlainHydra;
using testing::Repeated;

class HydraHeadTest : public ::testing::Test {
 protected:
  HydraHeads load(const std::vector<TestTensor>& tensors, const std::string& config) {
    dir_.write("config.json", config);
    dir_.write("model.safetensors", model::testing::safetensors_file(tensors));
    const auto files = model::ModelFiles::directory(dir_.path());
    return load_hydra_heads(*ops_, model::parse_config(testing::kTarget, "target"), *files, std::nullopt);
  }

  model::testing::TempDir dir_;
  std::unique_ptr<backend::Ops> ops_ = cpu::make_cpu_ops({.num_threads = 1, .isa = "auto", .max_rows = 16});
};

TEST_F(HydraHeadTest, KeepsABlockThatIsWrittenAgainOnce) {
  for (const Repeated repeated : {Repeated::kWritten, Repeated::kLeftOut, Repeated::kDifferent}) {
    for (const bool prefix : {false, true}) {
      const HydraHeads all = load(PlainHydra(repeated, prefix).tensors, prefix ? kHydraPrefix : kHydraMlp);
      EXPECT_EQ(all.prefix.has_value(), prefix);
      ASSERT_EQ(all.heads.size(), 3u);
      for (const HydraHead& head : all.heads) {
        const bool different = repeated == Repeated::kDifferent;
        EXPECT_EQ(head.blocks.size(), different ? 2u : 1u);
        EXPECT_EQ(head.turns, (std::vector<std::uint32_t>{0, different ? 1u : 0u}));
      }
    }
  }
}

TEST_F(HydraHeadTest, NeverOpensAPickle) {
  for (const char* pickle : {"pytorch_model.bin", "medusa_lm_head.pt", "hydra_lm_head.pt"}) {
    const model::testing::TempDir dir;
    dir.write("config.json", kHydraMlp);
    dir.write(pickle, "cos\nsystem\n(S'false'\ntR.");
    const auto files = model::ModelFiles::directory(dir.path());
    const std::string told = refusal(
        [&] { load_hydra_heads(*ops_, model::parse_config(testing::kTarget, "target"), *files, std::nullopt); });
    EXPECT_NE(told.find(std::string(pickle) + " is a pickle"), std::string::npos) << told;
    EXPECT_NE(told.find("write safetensors beside them"), std::string::npos);
    const bool head = std::string(pickle).ends_with("_lm_head.pt");
    EXPECT_EQ(told.find("models/convert_head.py " + dir.path() + "/" + pickle) != std::string::npos, head) << told;
  }
}

TEST_F(HydraHeadTest, HasAPrefixLayerWithTheKvHeadsOfTheFileThoughTheTargetHasCopies) {
  model::ModelSpec target = model::parse_config(testing::kTarget, "target");
  const std::uint32_t num_kv_heads = target.layers.front().attention.num_kv_heads;
  target.copy_kv_heads(target.layers.front().attention.num_heads);
  ASSERT_GT(target.layers.front().attention.num_kv_heads, num_kv_heads);
  dir_.write("config.json", kHydraPrefix);
  const auto files = model::ModelFiles::directory(dir_.path());
  EXPECT_EQ(load_hydra_prefix_config(*files, target)->num_kv_heads, num_kv_heads);
}

TEST_F(HydraHeadTest, HasNoPrefixLayerWithoutTheRopeOfItsTarget) {
  model::ModelSpec target = model::parse_config(testing::kTarget, "target");
  target.ropes.clear();
  dir_.write("config.json", kHydraPrefix);
  const auto files = model::ModelFiles::directory(dir_.path());
  const std::string told = refusal([&] { load_hydra_prefix_config(*files, target); });
  EXPECT_NE(told.find("the RoPE of its model, which has none"), std::string::npos) << told;
}

TEST_F(HydraHeadTest, CountsTheStateFromTheLastLayer) {
  const PlainHydra plain(Repeated::kWritten);
  const auto boundary = [&](int offset) {
    const std::string key = "\"hidden_state_offset\": ";
    return load(plain.tensors, replaced(kHydraMlp, key + "0", key + std::to_string(offset))).boundary;
  };
  EXPECT_EQ(boundary(0), std::nullopt);
  EXPECT_EQ(boundary(1), 2u);
  EXPECT_EQ(boundary(3), 0u);
  EXPECT_NE(refusal([&] { boundary(4); }).find("hidden_state_offset"), std::string::npos);
}

struct Refused {
  const char* name;
  std::string from, to;  // in config.json
  std::vector<std::string> told;
};
class HydraConfigTest : public HydraHeadTest, public ::testing::WithParamInterface<Refused> {};

INSTANTIATE_TEST_SUITE_P(
    Configs, HydraConfigTest,
    ::testing::Values(
        Refused{"eagle_heads", "\"mlp\"", "\"eagle-attn\"", {"hydra_head_arch", "eagle-attn"}},
        Refused{"cross_attention", "\"mlp\"", "\"cross-attn\"", {"hydra_head_arch", "cross-attn"}},
        Refused{"heads_that_see_no_tokens", "true", "false", {"grounded_heads"}},
        Refused{"nothing_said_of_tokens", "\"grounded_heads\": true,", "", {"grounded_heads"}},
        Refused{"unknown_keys", "\"x\"", "\"x\", \"noise\": 1, \"typical\": 2", {"'noise'", "'typical'", "2 problems"}},
        Refused{"no_heads", "_heads\": 3", "_heads\": 0", {"hydra_num_heads", "[1, 64]"}},
        Refused{"too_many_heads", "_heads\": 3", "_heads\": 65", {"hydra_num_heads", "[1, 64]"}},
        Refused{"fewer_heads_than_there_are", "_heads\": 3", "_heads\": 2", {"hydra_lm_head.2.weight"}},
        Refused{"more_heads_than_there_are", "_heads\": 3", "_heads\": 4", {"hydra_lm_head.3.weight", "is missing"}},
        Refused{"no_blocks", "_layers\": 3", "_layers\": 0", {"hydra_num_layers", "[1, 16]"}},
        Refused{"too_many_blocks", "_layers\": 3", "_layers\": 17", {"hydra_num_layers", "[1, 16]"}},
        Refused{"fewer_blocks_than_there_are", "_layers\": 3", "_layers\": 1", {"hydra_mlp.0.1.linear.weight"}},
        Refused{"more_blocks_than_are_written",
                "_layers\": 3",
                "_layers\": 4",
                {"hydra_mlp.0.3.linear.weight", "is missing"}},
        Refused{"a_prefix_that_is_not_there",
                "\"mlp\"",
                "\"prefix-mlp\"",
                {"prefix_embeding_layer.layers.0.input_layernorm.weight"}},
        Refused{"another_vocabulary", "\"x\"", "\"x\", \"vocab_size\": 41", {"vocab_size", "40"}},
        Refused{"another_width", "\"x\"", "\"x\", \"hidden_size\": 24", {"hidden_size", "16"}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(HydraConfigTest, IsRefusedByName) {
  const PlainHydra plain(Repeated::kWritten);
  const std::string told = refusal([&] { load(plain.tensors, replaced(kHydraMlp, GetParam().from, GetParam().to)); });
  for (const std::string& word : GetParam().told) EXPECT_NE(told.find(word), std::string::npos) << word << "\n" << told;
}

TEST_F(HydraHeadTest, RefusesTensorsThatItWouldNotReadAndMissesThoseThatItWould) {
  PlainHydra more(Repeated::kWritten);
  more.add("hydra_mlp.0.9.linear", {kTinyHidden, kTinyHidden});
  EXPECT_NE(refusal([&] { load(more.tensors, kHydraMlp); }).find("'hydra_mlp.0.9.linear.weight'"), std::string::npos);
  PlainHydra fewer(Repeated::kWritten);
  std::erase_if(fewer.tensors, [](const TestTensor& one) { return one.name == "hydra_mlp.1.0.res_connection.weight"; });
  EXPECT_NE(refusal([&] { load(fewer.tensors, kHydraMlp); }).find("'hydra_mlp.1.0.res_connection.weight' is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace quire::speculate::hydra_head_test
