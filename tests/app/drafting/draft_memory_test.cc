#include "app/drafting/draft_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "app/drafting/draft_settings.h"
#include "app/model/engine_settings.h"
#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/source_tree.h"

namespace quire::app::draft_memory_test {
namespace {

using ::testing::MatchesRegex;

constexpr std::uint32_t kBlocks = 50;
const std::string kStories = test::source_path("models/stories");

Config config_of(const std::string& speculation) {
  Problems problems;
  Config config = resolve({}, problems);
  EXPECT_TRUE(problems.empty());
  config.speculative_config = speculation;
  config.max_num_seqs = 3;
  config.max_num_batched_tokens = 64;
  config.threads = 1;
  return config;
}
ReadModel read(const Config& config) { return read_model(config, open_model(config.model)); }
DraftMemory counted(const std::string& speculation) {
  const Config config = config_of(speculation);
  return draft_memory(config, read(config));
}

// The target, packed, for drafters to be made beside it.
class DraftMemoryTest : public ::testing::Test {
 protected:
  DraftMemoryTest() : target_(pack_model(config_of(""), read(config_of("")), 64, 512)) {}
  LoadedModel target_;
};

TEST_F(DraftMemoryTest, OfAHeadHasTheBlocksThatTheHeadHas) {
  for (const char* speculation :
       {R"({"method": "eagle3"})", R"({"method": "eagle3", "topk": 4, "num_speculative_tokens": 20})",
        R"({"method": "eagle3", "num_speculative_tokens": 1})"}) {
    const Config config = config_of(speculation);
    const speculate::SpeculativeConfig parsed = speculation_of(config);
    const speculate::EagleDrafter drafter(*target_.ops, *target_.decoder, *head_files(parsed, target_.source),
                                          eagle_options(parsed), head_runner_limits(config, kBlocks, 512));
    const std::uint32_t num_scratch = drafter.head().limits().num_blocks - kBlocks;
    const std::uint64_t block =
        cpu::kv_block_bytes(drafter.head().config().kv_shape(config.block_size, 1, backend::KvType::kBF16));
    const DraftMemory drafts = draft_memory(config, target_);
    EXPECT_EQ(drafts.scratch_bytes, num_scratch * block) << speculation;
    EXPECT_GT(drafts.block_bytes, block);
    EXPECT_LT(drafts.block_bytes, 2 * block);  // what is remembered of rows is less than these
    EXPECT_EQ(drafts.states_bytes, std::uint64_t{64} * drafter.needs().boundaries.size() * 256 * 4);
  }
}

TEST_F(DraftMemoryTest, OfAHeadHasItsTensorsAsTheyAreStored) {
  const auto files = model::ModelFiles::directory(test::source_path("models/stories_draft"));
  const std::uint64_t stored = model::Checkpoint::open(*files).bytes();
  const std::uint64_t bytes = counted(R"({"method": "eagle3"})").weight_bytes;
  EXPECT_GT(bytes, stored * 9 / 10);
  EXPECT_LT(bytes, stored * 11 / 10);
  EXPECT_EQ(counted(R"({"method": "hybrid"})"), counted(R"({"method": "eagle3"})"));
}

TEST_F(DraftMemoryTest, OfHydraHeadsHasTheKAndVOfTheirLayerWhereThereIsOne) {
  const auto counted_with = [&](const std::string& layout) {
    const model::testing::TempDir dir;
    dir.write("config.json",
              R"({"hydra_num_heads": 1, "hydra_num_layers": 1, "grounded_heads": true, "hydra_head_arch": ")" + layout +
                  "\"}");
    dir.write("model.safetensors", model::testing::safetensors_file({model::testing::filled("x", "F32", {8, 8})}));
    return counted(R"({"method": "hydra", "model": ")" + dir.path() + "\"}");
  };
  const DraftMemory plain = counted_with("mlp");
  const DraftMemory prefixed = counted_with("prefix-mlp");
  EXPECT_EQ(plain.block_bytes, 0u);
  const std::uint64_t block = cpu::kv_block_bytes(target_.config.kv_shape(16, 1, backend::KvType::kBF16));
  // One layer of the target's, a hash a row and one more, and of each row in which batch it was stored last.
  EXPECT_EQ(prefixed.block_bytes, block / target_.config.num_layers() + 17 * 8 + 16 * 4);
  EXPECT_EQ(prefixed.weight_bytes, plain.weight_bytes);
}

TEST_F(DraftMemoryTest, OfADraftModelIsWhatThatModelTakes) {
  const Config config = config_of(R"({"method": "draft_model", "model": ")" + kStories + "\"}");
  const DraftMemory drafts = draft_memory(config, target_);
  EXPECT_EQ(drafts.weight_bytes, target_.packed_bytes);
  EXPECT_EQ(drafts.states_bytes, 0u);

  const speculate::ModelDrafter drafter(*target_.ops, *target_.decoder, target_.config.vocab,
                                        model_draft_limits(speculation_of(config), config, kBlocks),
                                        model_draft_options(speculation_of(config)));
  const backend::KvCache& cache = drafter.cache().kv();
  const std::uint64_t hashes = cache.shape().num_blocks * std::uint64_t{config.block_size} * 8;
  EXPECT_EQ(kBlocks * drafts.block_bytes + drafts.scratch_bytes, cache.bytes() + hashes);
}

TEST_F(DraftMemoryTest, OfSeveralModelsIsTheirSum) {
  const DraftMemory one = counted(R"({"method": "draft_model", "model": ")" + kStories + "\"}");
  const DraftMemory two = counted(R"({"method": "specinfer", "model": [")" + kStories + R"(", ")" + kStories + "\"]}");
  EXPECT_EQ(two.weight_bytes, 2 * one.weight_bytes);
  EXPECT_EQ(two.block_bytes, 2 * one.block_bytes);
  EXPECT_EQ(two.scratch_bytes, 2 * one.scratch_bytes);
}

TEST_F(DraftMemoryTest, OfTheTargetItselfIsScratchAlone) {
  for (const char* method : {"layer_skip", "draft_verify", "magicdec"}) {
    const std::string speculation = R"({"method": ")" + std::string(method) + "\"}";
    const Config config = config_of(speculation);
    const std::uint32_t blocks = num_target_scratch_blocks(speculation_of(config), config, target_.config);
    EXPECT_GE(blocks, config.max_num_seqs) << method;
    DraftMemory expected;
    expected.scratch_bytes = blocks * cpu::kv_block_bytes(target_.config.kv_shape(16, 1, target_.kv_dtype));
    EXPECT_EQ(draft_memory(config, target_), expected) << method;
  }
}

TEST_F(DraftMemoryTest, OfTriforceIsASmallModelAndScratchOfTheTarget) {
  const DraftMemory model = counted(R"({"method": "draft_model", "model": ")" + kStories + "\"}");
  const DraftMemory both = counted(R"({"method": "triforce", "model": ")" + kStories + "\"}");
  EXPECT_EQ(both.weight_bytes, model.weight_bytes);
  EXPECT_EQ(both.block_bytes, model.block_bytes);
  EXPECT_GT(both.scratch_bytes, model.scratch_bytes);
}

TEST_F(DraftMemoryTest, OfTextMethodsAndOfNoneIsNothing) {
  for (const char* speculation : {"", R"({"method": "none"})", R"({"method": "ngram"})", R"({"method": "suffix"})"}) {
    EXPECT_EQ(counted(speculation), DraftMemory{}) << speculation;
  }
}

TEST_F(DraftMemoryTest, AHeadThatIsNotThereIsRefusedBeforeAnythingIsPacked) {
  EXPECT_THROW(counted(R"({"method": "eagle3", "model": "/nowhere/at/all"})"), StartError);
  ModelSource other;
  other.name = "another";
  EXPECT_THROW(head_files(speculation_of(config_of(R"({"method": "eagle3"})")), other), StartError);
}

TEST_F(DraftMemoryTest, HeadsAreRefusedWhereEmbeddingsAreNarrowerThanLayers) {
  for (const char* method : {"eagle3", "hybrid", "medusa", "hydra"}) {
    const Config config = config_of(fmt::format(R"({{"method": "{}"}})", method));
    ReadModel narrow = read(config);
    narrow.config.embedding = narrow.config.hidden / 2;
    try {
      draft_memory(config, narrow);
      ADD_FAILURE() << method;
    } catch (const StartError& error) {
      EXPECT_THAT(error.what(), MatchesRegex(fmt::format(".*method {} needs .* as wide as its layers: {}, not {}",
                                                         method, narrow.config.hidden, narrow.config.embedding)));
    }
  }
  const Config suffix = config_of(R"({"method": "suffix"})");
  ReadModel narrow = read(suffix);
  narrow.config.embedding = narrow.config.hidden / 2;
  EXPECT_EQ(draft_memory(suffix, narrow).weight_bytes, 0);
}

TEST(DraftsLine, SaysWhatDraftsTakeAndNothingOfNone) {
  MemoryRequest request;
  request.block_bytes = 1000;
  request.model_len = 512;
  request.free_bytes = 1u << 30;
  EXPECT_EQ(drafts_line(plan_memory(request), request), "");
  const MemoryRequest with = with_drafts(request, {1u << 20, 1024, 4096, 2048});
  const MemoryPlan plan = plan_memory(with);
  EXPECT_THAT(drafts_line(plan, with),
              MatchesRegex("drafts: 1.0 MiB of weights, .* of K and V for [0-9]+ blocks, 4.0 KiB of scratch blocks, "
                           "2.0 KiB of captured states"));
  EXPECT_EQ(plan.draft_bytes, (1u << 20) + 1024ull * plan.num_blocks + 4096 + 2048);
}

TEST(WithDrafts, WeightsAndStatesAreNoLongerFree) {
  MemoryRequest request;
  request.free_bytes = 1000;
  EXPECT_EQ(with_drafts(request, {600, 50, 70, 399}).free_bytes, 1u);
  EXPECT_EQ(with_drafts(request, {600, 50, 70, 400}).free_bytes, 0u);
  EXPECT_EQ(with_drafts(request, {600, 50, 70, 401}).free_bytes, 0u);
  request.free_bytes.reset();
  EXPECT_FALSE(with_drafts(request, {600, 50, 70, 401}).free_bytes.has_value());
}

}  // namespace
}  // namespace quire::app::draft_memory_test
