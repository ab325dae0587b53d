#include "app/drafting/profile_step.h"

#include <gtest/gtest.h>

#include <set>

#include "app/instance/instance.h"
#include "core/base/start_error.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::app::profile_step_test {
namespace {

Config config_of(std::uint32_t rows, std::uint32_t sequences) {
  Problems problems;
  Config config = resolve({}, problems);
  config.max_num_batched_tokens = rows;
  config.max_num_seqs = sequences;
  config.threads = 1;
  return config;
}

TEST(ProfileStep, HasEveryRowAndSequenceThatAStepMayHave) {
  for (const std::uint32_t rows : {7u, 8u, 9u, 64u}) {
    const flow::StepPlan plan = fullest_step(config_of(rows, 8), 1000, 50);
    EXPECT_EQ(plan.tokens.size(), rows);
    EXPECT_EQ(plan.sequences.size(), std::min(rows, 8u));
    std::set<std::uint32_t> slots(plan.slots.begin(), plan.slots.end());
    EXPECT_EQ(slots.size(), rows);
    std::uint32_t next = 0;
    for (const flow::PlannedSequence& sequence : plan.sequences) {
      EXPECT_EQ(sequence.first_row, next);
      EXPECT_TRUE(sequence.samples);
      next += sequence.num_rows;
    }
    EXPECT_EQ(next, rows);
  }
}

TEST(ProfileStep, GoesNoFurtherThanTheLongestSequence) {
  EXPECT_EQ(fullest_step(config_of(64, 2), 31, 50).tokens.size(), 62u);
  EXPECT_EQ(fullest_step(config_of(64, 2), 32, 50).tokens.size(), 64u);
  EXPECT_EQ(fullest_step(config_of(64, 2), 33, 50).tokens.size(), 64u);
}

// A tiny model on the simulated device.
class OwnMemory : public ::testing::Test {
 protected:
  OwnMemory() {
    const model::ModelSpec shape = model::parse_config(model::testing::kTinyLlama, "a test");
    dir_.write("config.json", model::testing::kTinyLlama);
    dir_.write("model.safetensors", model::testing::safetensors_file(model::testing::fitting_tensors(shape, "F32")));
    config_ = config_of(16, 4);
    config_.model = dir_.path();
    config_.device = "simulated";
  }

  model::testing::TempDir dir_;
  Config config_;
};

TEST_F(OwnMemory, IsMeasuredWithoutTheCacheOfTheMeasurement) {
  const LoadedModel model = pack_model(config_, read_model(config_, open_model(config_.model)), 16, 64);
  const RoleScope role(engine_role);
  free_behind_step(config_, model, {});  // attention's scratch is the ops', and stays
  const std::uint64_t before = model.device->free_bytes().value();
  const std::uint64_t behind = free_behind_step(config_, model, {});
  EXPECT_EQ(model.device->free_bytes(), before);  // all of it was given back
  EXPECT_LT(behind, before);                      // row buffers were there
  EXPECT_GT(behind, before - (1u << 20));         // and little else: E 8, F 12, V 20, sixteen rows
  // With drafts there are row buffers twice.
  speculate::SpeculativeConfig drafts;
  drafts.method = speculate::Method::kDraftModel;
  drafts.num_speculative_tokens = 0;
  EXPECT_EQ(free_behind_step(config_, model, drafts), before - 2 * (before - behind));
}

TEST_F(OwnMemory, IsPlannedBeforeAnythingIsPackedByTheDevicesOwnSizes) {
  const ReadModel read = read_model(config_, open_model(config_.model));
  const MemoryRequest request = request_before_packing(config_, read);
  EXPECT_TRUE(request.own_memory);
  EXPECT_EQ(request.block_bytes, 2u * 2 * 16 * 4 * 4);  // layers, K and V, positions, dimensions, f32
  EXPECT_EQ(request.free_bytes, read.device->free_bytes().value() - read.packed_bytes);
}

}  // namespace
}  // namespace quire::app::profile_step_test
