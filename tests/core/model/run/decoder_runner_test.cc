#include "core/model/run/decoder_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/thread_role.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::decoder_runner_test {
namespace {

using ::testing::ElementsAre;
using testing::FakeOps;
using enum flow::BlockOp::Kind;
using testing::fitting_model;
using testing::TempDir;

RunnerLimits small_limits() {
  RunnerLimits limits;
  limits.max_rows = 8;
  limits.max_sequences = 3;
  limits.num_blocks = 4;
  limits.num_swap_blocks = 2;
  return limits;
}

class DecoderRunnerTest : public ::testing::Test {
 protected:
  TempDir dir_;
  std::unique_ptr<ModelFiles> files_ = fitting_model(dir_);
  FakeOps ops_;
  Decoder decoder_{ops_, load_config(*files_), *files_, 64};
  DecoderRunner runner_{ops_, decoder_, small_limits()};

  // Appends a sequence whose table is one block.
  static void append(flow::StepPlan& plan, std::uint64_t id, std::uint32_t position, std::uint32_t num_rows,
                     bool samples) {
    flow::PlannedSequence sequence;
    sequence.seq = SeqId(id);
    sequence.first_row = static_cast<std::uint32_t>(plan.tokens.size());
    sequence.num_rows = num_rows;
    sequence.first_position = position;
    sequence.first_table = static_cast<std::uint32_t>(plan.block_tables.size());
    sequence.num_table = 1;
    sequence.samples = samples;
    sequence.sampling.seed = id;
    const auto block = static_cast<std::uint32_t>(plan.sequences.size());
    plan.block_tables.emplace_back(block);
    for (std::uint32_t row = 0; row < num_rows; ++row) {
      plan.tokens.push_back(static_cast<TokenId>(row));
      plan.positions.push_back(position + row);
      plan.slots.push_back(block * 16 + position + row);
    }
    plan.sequences.push_back(sequence);
  }
};

TEST_F(DecoderRunnerTest, LogitsRowsAreTheLastRowsOfSpeakingSequencesAtThePositionAfterTheirs) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 3, true);
  append(plan, 8, 4, 2, false);
  append(plan, 9, 5, 1, true);
  runner_.submit(plan);
  ASSERT_EQ(ops_.batch.logits_rows.size(), 2u);
  EXPECT_EQ(ops_.batch.logits_rows[0].row, 2u);
  EXPECT_EQ(ops_.batch.logits_rows[0].position, 3u);
  EXPECT_EQ(ops_.batch.logits_rows[0].params.seed, 7u);
  EXPECT_EQ(ops_.batch.logits_rows[1].row, 5u);
  EXPECT_EQ(ops_.batch.logits_rows[1].position, 6u);
  EXPECT_EQ(ops_.batch.sequences.size(), 3u);
  EXPECT_EQ(ops_.chosen_vocab, 20u);
}

TEST_F(DecoderRunnerTest, AsManyStepsAreInFlightAsItsOpsTakeAndEachIsCollectedAsItWasSubmitted) {
  const RoleScope engine(engine_role);
  for (const std::uint32_t depth : {1u, 2u, 3u}) {
    ops_.num_steps = depth;
    DecoderRunner runner(ops_, decoder_, small_limits());
    std::uint64_t submitted = 0;
    std::uint64_t collected = 0;
    for (int round = 0; round < 3; ++round) {
      while (!runner.full()) {
        flow::StepPlan plan;  // gone before it is collected
        append(plan, 10 + submitted++, 0, 2, true);
        plan.sequences[0].sampling.num_top = static_cast<std::uint32_t>(submitted % 3);
        runner.submit(plan);
      }
      EXPECT_EQ(submitted - collected, depth);
      EXPECT_EQ(ops_.begun.size(), depth);
      EXPECT_EQ(ops_.begun.front().tokens[1], 1) << "the batch lives as long as its step";
      const auto choices = runner.collect();
      ASSERT_EQ(choices.size(), 1u);
      EXPECT_EQ(choices[0].seq, SeqId(10 + collected++));
      EXPECT_EQ(choices[0].top.size(), collected % 3);
    }
    while (!runner.idle()) runner.collect();
  }
}

TEST_F(DecoderRunnerTest, ARowWithoutATokenIsFedByTheChoiceThatThePlanNames) {
  const RoleScope engine(engine_role);
  ops_.num_steps = 2;
  DecoderRunner runner(ops_, decoder_, small_limits());
  flow::StepPlan plan;
  append(plan, 7, 0, 3, true);
  append(plan, 8, 4, 2, true);
  runner.submit(plan);
  EXPECT_TRUE(ops_.batch.fed.empty());
  flow::StepPlan next;
  append(next, 9, 0, 2, false);
  append(next, 8, 6, 1, true);
  next.sequences[1].fed_by = 1;
  next.tokens[2] = -1;
  runner.submit(next);
  ASSERT_EQ(ops_.batch.fed.size(), 1u);
  EXPECT_EQ(ops_.batch.fed[0].row, 2u);
  EXPECT_EQ(ops_.batch.fed[0].logits_row, 1u);
  EXPECT_EQ(ops_.batch.tokens[2], -1);
}

TEST_F(DecoderRunnerTest, NobodyFeedsARowWhileNothingIsInFlight) {
  const RoleScope engine(engine_role);
  ops_.num_steps = 2;
  DecoderRunner runner(ops_, decoder_, small_limits());
  flow::StepPlan plan;
  append(plan, 7, 4, 1, true);
  plan.sequences[0].fed_by = 0;
  plan.tokens[0] = -1;
  EXPECT_DEATH(runner.submit(plan), "CHECK failed");
}

TEST_F(DecoderRunnerTest, GivenTokensAreScoredByTheRowsBeforeTheOneThatSpeaks) {
  const RoleScope engine(engine_role);
  const std::vector<TokenId> given = {11, 12};
  const std::vector<std::uint32_t> allowed = {7};
  flow::StepPlan plan;
  append(plan, 7, 4, 4, true);
  append(plan, 8, 9, 1, false);
  plan.sequences[0].given = given;
  plan.sequences[0].edits.allowed = allowed;
  runner_.submit(plan);
  ASSERT_EQ(ops_.batch.logits_rows.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ops_.batch.logits_rows[i].row, i + 1);
    EXPECT_EQ(ops_.batch.logits_rows[i].position, i + 6);
    EXPECT_EQ(ops_.batch.logits_rows[i].given, i < 2 ? given[i] : -1);
    EXPECT_EQ(ops_.batch.logits_rows[i].edits.empty(), i < 2);
  }
  for (const flow::StepChoice& choice : runner_.collect()) EXPECT_EQ(choice.seq, SeqId(7));

  plan.sequences[0].samples = false;  // then they are those of its last rows
  plan.sequences[1].given = std::span(given).first(1);
  runner_.submit(plan);
  ASSERT_EQ(ops_.batch.logits_rows.size(), 3u);
  EXPECT_EQ(ops_.batch.logits_rows[0].row, 2u);
  EXPECT_EQ(ops_.batch.logits_rows[1].row, 3u);
  EXPECT_EQ(ops_.batch.logits_rows[2].row, 4u);
  EXPECT_EQ(ops_.batch.logits_rows[2].position, 10u);
  EXPECT_EQ(runner_.collect()[2].seq, SeqId(8));
}

TEST_F(DecoderRunnerTest, NoMoreRowsSpeakThanThereAreRowsOfLogits) {
  const RoleScope engine(engine_role);
  const std::vector<TokenId> given = {1, 2, 3};
  flow::StepPlan plan;
  append(plan, 7, 0, 4, true);
  plan.sequences[0].given = std::span(given).first(2);
  runner_.submit(plan);  // three
  runner_.collect();
  plan.sequences[0].given = given;
  EXPECT_DEATH(runner_.submit(plan), "CHECK failed");
  plan.sequences[0].samples = false;
  runner_.submit(plan);
  runner_.collect();
  append(plan, 8, 0, 1, false);
  plan.sequences[1].given = std::span(given).first(2);  // of one row
  plan.sequences[0].given = {};
  EXPECT_DEATH(runner_.submit(plan), "CHECK failed");
}

TEST_F(DecoderRunnerTest, ChoicesComeBackInPlanOrderUnderTheirSequences) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 1, true);
  append(plan, 8, 0, 1, false);
  append(plan, 9, 0, 1, true);
  EXPECT_TRUE(runner_.idle());
  runner_.submit(plan);
  EXPECT_TRUE(runner_.full());
  const std::span<const flow::StepChoice> choices = runner_.collect();
  EXPECT_TRUE(runner_.idle());
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].seq, SeqId(7));
  EXPECT_EQ(choices[0].token, 100);
  EXPECT_EQ(choices[1].seq, SeqId(9));
  EXPECT_EQ(choices[1].token, 101);
  EXPECT_TRUE(choices[0].finite);
}

TEST_F(DecoderRunnerTest, LogProbabilitiesAndListsComeBackToThoseWhoAsked) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 1, true);
  append(plan, 8, 0, 1, true);
  append(plan, 9, 0, 1, true);
  plan.sequences[1].sampling.logprob = true;
  plan.sequences[2].sampling.num_top = 2;
  runner_.submit(plan);
  const std::span<const flow::StepChoice> choices = runner_.collect();
  EXPECT_EQ(choices[0].logprob, 0.0f);
  EXPECT_EQ(choices[1].logprob, -0.25f);
  EXPECT_TRUE(choices[1].top.empty());
  ASSERT_EQ(choices[2].top.size(), 2u);
  EXPECT_EQ(choices[2].top[1].token, 1);
  EXPECT_EQ(choices[2].top[1].logprob, -1.0f);
  plan.sequences[2].sampling.num_top = 0;
  runner_.submit(plan);
  EXPECT_TRUE(runner_.collect()[2].top.empty());
}

TEST_F(DecoderRunnerTest, ThePlanIsCopied) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 2, true);
  runner_.submit(plan);
  plan.tokens.assign(2, 19);
  plan.clear();
  EXPECT_THAT(ops_.batch.tokens, ElementsAre(0, 1));
  EXPECT_THAT(ops_.batch.slots, ElementsAre(0u, 1u));
}

TEST_F(DecoderRunnerTest, AStepWithoutLogitsRowsAsksForNoLogits) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 2, false);
  runner_.submit(plan);
  EXPECT_EQ(std::count(ops_.calls.begin(), ops_.calls.end(), "gather"), 0);
  EXPECT_TRUE(runner_.collect().empty());
}

TEST_F(DecoderRunnerTest, EveryLayerIsTheSameChainOfOps) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 1, true);
  runner_.submit(plan);
  std::vector<std::string> expected = {"begin", "embed"};
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* op : {"norm", "multiply", "rope_store", "attend", "multiply", "add", "norm", "multiply",
                           "activate", "multiply", "add"}) {
      expected.push_back(op);
    }
  }
  for (const char* op : {"gather", "norm", "multiply", "choose"}) expected.push_back(op);
  EXPECT_EQ(ops_.calls, expected);
}

TEST_F(DecoderRunnerTest, TakesPlansUpToItsLimits) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 6, true);
  append(plan, 8, 0, 1, true);
  append(plan, 9, 0, 1, true);
  runner_.submit(plan);
  EXPECT_EQ(runner_.collect().size(), 3u);
}

TEST_F(DecoderRunnerTest, BlockOpsRunInOrderBeforeTheRows) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 1, true);
  plan.block_ops = {{kCopy, 0, 3}, {kSwapOut, 3, 1}, {kPoison, 0, 3}, {kSwapIn, 1, 2}, {kCopy, 2, 0}};
  runner_.submit(plan);
  EXPECT_THAT(ops_.block_calls, ElementsAre("copy 0 3", "read 3", "poison 3", "write 2", "copy 2 0"));
  EXPECT_EQ(ops_.block_calls_before_begin, 5u);
  EXPECT_EQ(runner_.collect().size(), 1u);
}

TEST_F(DecoderRunnerTest, AccumulatedScoresComeBackForSequencesThatWantThemOneForEachGroupOf16) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 1, true);
  append(plan, 8, 0, 2, true);
  append(plan, 9, 15, 1, true);
  plan.sequences[0].wants_accumulated_scores = plan.sequences[2].wants_accumulated_scores = true;
  runner_.submit(plan);
  EXPECT_EQ(ops_.batch.num_accumulated_scores, 2u);
  runner_.collect();
  EXPECT_THAT(runner_.accumulated_scores(0), ElementsAre(0u));
  EXPECT_THAT(runner_.accumulated_scores(1), ElementsAre());
  EXPECT_THAT(runner_.accumulated_scores(2), ElementsAre(1u));

  flow::StepPlan longer;
  append(longer, 9, 16, 1, true);
  longer.sequences[0].num_table = 2;
  longer.block_tables = {BlockId(0), BlockId(1)};
  longer.sequences[0].wants_accumulated_scores = true;
  runner_.submit(longer);
  runner_.collect();
  EXPECT_THAT(runner_.accumulated_scores(0), ElementsAre(0u, 1u));
}

TEST_F(DecoderRunnerTest, HiddenStatesOfTheLastRowsComeBackForThoseWhoseRowsArePooledAndNoLogitsAreMade) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 2, false);
  append(plan, 8, 0, 3, false);
  append(plan, 9, 0, 3, false);
  plan.sequences[0].num_pooled = 2;
  plan.sequences[2].num_pooled = 1;
  runner_.submit(plan);
  EXPECT_EQ(std::count(ops_.calls.begin(), ops_.calls.end(), "norm"), 2 * 2 + 1) << "the final one, of all rows";
  EXPECT_EQ(ops_.calls.back(), "norm");
  EXPECT_TRUE(runner_.collect().empty());
  const std::uint32_t width = runner_.hidden_width();
  const auto expect_rows = [&](std::size_t planned, std::uint32_t first, std::uint32_t num) {
    const std::span<const float> rows = runner_.pooled(planned);
    ASSERT_EQ(rows.size(), std::size_t{num} * width);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i], static_cast<float>(100 * (first + i / width) + i % width));
    }
  };
  expect_rows(0, 0, 2);
  expect_rows(1, 5, 0);
  expect_rows(2, 7, 1);

  plan.sequences[0].num_pooled = plan.sequences[2].num_pooled = 0;
  runner_.submit(plan);
  EXPECT_EQ(std::count(ops_.calls.begin(), ops_.calls.end(), "norm"), 2 * 2) << "nobody wants any";
  runner_.collect();
  EXPECT_TRUE(runner_.pooled(2).empty());
  plan.sequences[0].num_pooled = 3;  // of two rows
  EXPECT_DEATH(runner_.submit(plan), "3 vs 2");
}

TEST_F(DecoderRunnerTest, APlanOfBlockOpsAloneRunsNoForwardAndSaysNothing) {
  const RoleScope engine(engine_role);
  flow::StepPlan rows;
  append(rows, 7, 0, 1, true);
  runner_.submit(rows);
  runner_.collect();
  ops_.calls.clear();
  flow::StepPlan plan;
  plan.block_ops = {{kCopy, 0, 3}};
  runner_.submit(plan);
  EXPECT_TRUE(runner_.full());
  EXPECT_TRUE(runner_.collect().empty());
  EXPECT_TRUE(runner_.idle());
  EXPECT_THAT(ops_.calls, ElementsAre());
  EXPECT_THAT(ops_.block_calls, ElementsAre("copy 0 3"));
}

using DecoderRunnerDeathTest = DecoderRunnerTest;

TEST_F(DecoderRunnerDeathTest, APlanBeyondTheLimitsIsOurBug) {
  const RoleScope engine(engine_role);
  flow::StepPlan rows;
  append(rows, 7, 0, 9, true);
  EXPECT_DEATH(runner_.submit(rows), "9 vs 8");
  flow::StepPlan sequences;
  for (std::uint64_t id = 0; id < 4; ++id) append(sequences, id, 0, 1, true);
  EXPECT_DEATH(runner_.submit(sequences), "4 vs 3");
  flow::StepPlan table;
  append(table, 7, 15, 2, true);
  EXPECT_DEATH(runner_.submit(table), "17 vs 16");
  flow::StepPlan token;
  append(token, 7, 0, 1, true);
  token.tokens[0] = 20;
  EXPECT_DEATH(runner_.submit(token), "token");
  flow::StepPlan slot;
  append(slot, 7, 0, 1, true);
  slot.slots[0] = 64;
  EXPECT_DEATH(runner_.submit(slot), "64 vs 64");
  EXPECT_DEATH(runner_.submit(flow::StepPlan()), "empty");
}

TEST_F(DecoderRunnerDeathTest, BlockOpsBeyondTheLimitsAreOurBug) {
  const RoleScope engine(engine_role);
  const auto submit = [&](flow::BlockOp op) {
    flow::StepPlan plan;
    plan.block_ops = {op};
    runner_.submit(plan);
    runner_.collect();
  };
  for (const flow::BlockOp op : std::initializer_list<flow::BlockOp>{
           {kCopy, 3, 0}, {kCopy, 0, 3}, {kPoison, 9, 3}, {kSwapOut, 3, 1}, {kSwapIn, 1, 3}}) {
    submit(op);
  }
  for (const flow::BlockOp op : std::initializer_list<flow::BlockOp>{
           {kCopy, 4, 0}, {kCopy, 0, 4}, {kPoison, 0, 4}, {kSwapOut, 4, 0}, {kSwapIn, 0, 4}}) {
    EXPECT_DEATH(submit(op), "4 vs 4");
  }
  EXPECT_DEATH(submit({kSwapOut, 0, 2}), "2 vs 2");
  EXPECT_DEATH(submit({kSwapIn, 2, 0}), "2 vs 2");
}

TEST_F(DecoderRunnerDeathTest, OneStepAtATime) {
  const RoleScope engine(engine_role);
  flow::StepPlan plan;
  append(plan, 7, 0, 1, true);
  EXPECT_DEATH(runner_.collect(), "idle");
  runner_.submit(plan);
  EXPECT_DEATH(runner_.submit(plan), "full");
}

}  // namespace
}  // namespace quire::model::decoder_runner_test
