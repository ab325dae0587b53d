#include "app/drafting/drafting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "app/instance/instance.h"
#include "app/model/engine_settings.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/source_tree.h"

namespace quire::app::drafting_test {
namespace {

using model::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

Config config_of(const std::string& speculation) {
  Problems problems;
  Config config = resolve({}, problems);
  EXPECT_TRUE(problems.empty());
  config.model = test::source_path("models/stories").string();
  config.speculative_config = speculation;
  config.max_num_seqs = 2;
  config.threads = 1;
  return config;
}

class DraftingTest : public ::testing::Test {
 protected:
  DraftingTest() {
    config_ = config_of(R"({"method": "ngram"})");
    config_.packed_cache = cache_.path();
    target_ = pack_model(config_, read_model(config_, open_model(config_.model)), 64, 512);
    plan_.num_blocks = 40;
    plan_.max_model_len = 512;
  }

  Drafting drafting(const std::string& numeric_mode = "mode") {
    return Drafting(speculation_of(config_), config_, target_, plan_, numeric_mode);
  }
  std::string file() const { return target_.packed_file + ".costs"; }
  // A start that serves steps of these seconds, and its end.
  std::string learn(double seconds, const std::string& numeric_mode = "mode") {
    Drafting one = drafting(numeric_mode);
    for (std::uint32_t rows = 1; rows <= 8; ++rows) one.depth()->note_step(rows, seconds);
    one.keep_costs();
    return one.depth()->step_costs().text();
  }
  std::string known(const std::string& numeric_mode = "mode") {
    return drafting(numeric_mode).depth()->step_costs().text();
  }

  TempDir cache_;
  Config config_;
  LoadedModel target_;
  MemoryPlan plan_;
};

TEST_F(DraftingTest, WhatStepsCostIsThereAfterTheNextStart) {
  const std::string nothing = known();
  const std::string learned = learn(0.5);
  EXPECT_NE(learned, nothing);
  EXPECT_EQ(known(), learned);
}

TEST_F(DraftingTest, CostsOfAnotherNumericModeOrThreadsAreNotTaken) {
  const std::string nothing = known();
  learn(0.5);
  EXPECT_EQ(known("another"), nothing);
  config_.threads = 2;
  EXPECT_EQ(known(), nothing);
}

TEST_F(DraftingTest, ADamagedTableIsLeftAloneAndWrittenAnew) {
  const std::string nothing = known();
  learn(0.5);
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(known(), nothing);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("step_costs step costs in " + file()));
  const std::string learned = learn(0.25);
  EXPECT_EQ(known(), learned);
}

TEST_F(DraftingTest, NothingIsWrittenWhereWeightsAreNotKept) {
  target_.packed_file.clear();
  learn(0.5);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(DraftingTest, TheDrafterIsHandedOverOnce) {
  const auto cache = target_.ops->make_kv(target_.config.kv_shape(16, 40, backend::KvType::kF32));
  Drafting one = drafting();
  EXPECT_NE(one.complete(*cache), nullptr);
  EXPECT_EQ(one.complete(*cache), nullptr);
}

TEST(InstanceDrafting, AServersEndKeepsWhatItsStepsCost) {
  const TempDir cache;
  Config config = config_of(R"({"method": "layer_skip"})");
  config.packed_cache = cache.path();
  const auto serve = [&] {
    ::testing::internal::CaptureStderr();
    {
      Instance instance(config);
      instance.start(nullptr);
      instance.stop();
    }
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(serve(), HasSubstr("measured anew"));
  EXPECT_THAT(serve(), HasSubstr("step_costs loaded from " + cache.path()));
  config.speculative_config.clear();
  EXPECT_THAT(serve(), Not(HasSubstr("step_costs")));
}

}  // namespace
}  // namespace quire::app::drafting_test
