// What the decoder refuses, and what its layers' windows let go.
#include "core/model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/kv_constants.h"
#include "core/base/thread_role.h"
#include "core/model/run/decoder_runner.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::decoder_test {
namespace {

using testing::FakeOps;
using testing::fitting_model;
using ::testing::HasSubstr;
using testing::refusal;
using testing::TempDir;

TEST(DecoderTest, RefusesALengthItsPositionsDoNotReach) {
  const TempDir dir;
  const auto files = fitting_model(dir);
  const ModelSpec config = load_config(*files);
  FakeOps ops;
  EXPECT_THAT(refusal([&] { Decoder(ops, config, *files, 65); }), HasSubstr("max-model-len 65 is outside [1, 64]"));
  EXPECT_EQ(refusal([&] { Decoder(ops, config, *files, 64); }), "");
  EXPECT_THAT(refusal([&] { Decoder(ops, config, *files, 0); }), HasSubstr("outside [1, 64]"));
  EXPECT_EQ(refusal([&] { Decoder(ops, config, *files, 1); }), "");
}

TEST(DecoderDeathTest, BlocksBelowEveryLayersWindowMayBeDropped) {
  const RoleScope engine(engine_role);
  const TempDir dir;
  const auto files = fitting_model(dir, R"({"model_type": "mistral", "hidden_size": 8, "intermediate_size": 12,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 20,
    "max_position_embeddings": 64, "sliding_window": 5})");
  FakeOps ops;
  const Decoder decoder(ops, load_config(*files), *files, 64);
  RunnerLimits limits;
  limits.max_rows = 8;
  limits.max_sequences = 3;
  limits.num_blocks = 4;
  DecoderRunner runner(ops, decoder, limits);
  const auto submit = [&](std::uint32_t position) {
    flow::StepPlan plan;
    flow::PlannedSequence sequence;
    sequence.num_rows = 1;
    sequence.first_position = position;
    sequence.num_table = 3;
    plan.sequences = {sequence};
    plan.block_tables = {kNoBlock, BlockId(1), BlockId(2)};
    plan.tokens = {1};
    plan.positions = {position};
    plan.slots = {16 + position % 16};
    runner.submit(plan);
    runner.collect();
  };
  EXPECT_DEATH(submit(19), "may_look_at");  // sees 15..19
  submit(20);
  submit(21);
}

}  // namespace
}  // namespace quire::model::decoder_test
