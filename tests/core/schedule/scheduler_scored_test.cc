// Prompts that are scored or pooled: of which rows logits or hidden states are wanted.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/schedule/scheduler.h"
#include "tests/core/schedule/scheduler_rig.h"

namespace quire::schedule {
namespace {

TEST_F(SchedulerTest, APooledPromptTakesItsChunksWithoutARowOfLogits) {
  for (const flow::Pooling pooling : {flow::Pooling::kLast, flow::Pooling::kMean}) {
    const bool mean = pooling == flow::Pooling::kMean;
    kv::BlockPool& pool = make_pool(16, 16);
    Scheduler scheduler({.max_num_seqs = 2, .max_num_batched_tokens = 16}, pool, index_of(pool));
    Sequence& pooled = add(scheduler, pool, 40, 0, false, pooling);
    for (const auto& [rows, last] : {std::pair(16u, false), std::pair(16u, false), std::pair(8u, true)}) {
      const flow::StepPlan& plan = scheduler.plan();
      ASSERT_EQ(plan.sequences.size(), 1u);
      EXPECT_EQ(plan.sequences[0].num_rows, rows);
      EXPECT_EQ(plan.sequences[0].num_pooled, mean ? rows : last ? 1u : 0u);
      EXPECT_FALSE(plan.sequences[0].samples);
      EXPECT_TRUE(plan.sequences[0].given.empty());
      commit(scheduler);
    }
    EXPECT_EQ(pooled.remaining(), 0u);
    scheduler.remove(pooled);
    EXPECT_TRUE(scheduler.plan().empty());
  }
}

TEST_F(SchedulerTest, AScoredPromptIsCutByTheRowsOfLogits) {
  kv::BlockPool& pool = make_pool(16, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logits_rows = 6}, pool, index_of(pool));
  Sequence& sequence = add(scheduler, pool, 14, 100, true);
  for (const auto& [rows, given, samples] :
       {std::tuple(6u, 6u, false), std::tuple(6u, 6u, false), std::tuple(2u, 1u, true), std::tuple(1u, 0u, true)}) {
    const flow::StepPlan& plan = scheduler.plan();
    ASSERT_EQ(plan.sequences.size(), 1u);
    EXPECT_EQ(plan.sequences[0].num_rows, rows);
    ASSERT_EQ(plan.sequences[0].given.size(), given);
    for (std::size_t i = 0; i < given; ++i) {
      EXPECT_EQ(plan.sequences[0].given[i], static_cast<TokenId>(plan.sequences[0].first_position + i + 1));
    }
    EXPECT_EQ(plan.sequences[0].samples, samples);
    commit(scheduler);
  }
  EXPECT_EQ(sequence.progress.num_scored(), 13u);
}

TEST_F(SchedulerTest, EverySequenceHasARowOfLogitsAndAScoredPromptTakesWhatIsLeft) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& scored = add(scheduler, pool, 40, 100, true);
  scheduler.plan();
  EXPECT_EQ(scored.planned_rows, 4u) << "alone it has them all";
  commit(scheduler);
  Sequence& plain = add(scheduler, pool, 30);
  scheduler.plan();
  EXPECT_EQ(scored.planned_rows, 3u) << "one is for who waits";
  EXPECT_EQ(plain.planned_rows, 30u);
  commit(scheduler);
  Sequence& second = add(scheduler, pool, 40, 100, true);
  Sequence& third = add(scheduler, pool, 5);
  scheduler.plan();
  EXPECT_EQ(plain.planned_rows, 1u);
  EXPECT_EQ(scored.planned_rows, 2u);
  EXPECT_EQ(second.planned_rows, 1u) << "the row that was kept for it";
  EXPECT_EQ(third.planned_rows, 0u) << "there is no row of logits left";
  commit(scheduler);
  scheduler.plan();
  EXPECT_EQ(scored.planned_rows, 1u);
  EXPECT_EQ(second.planned_rows, 1u);
  EXPECT_EQ(third.planned_rows, 5u);
}

TEST_F(SchedulerTest, APlainPromptThatDoesNotSpeakYetLeavesItsRowOfLogitsToOthers) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 2, .max_num_batched_tokens = 16}, pool, index_of(pool));
  Sequence& plain = add(scheduler, pool, 60);
  scheduler.plan();
  commit(scheduler);
  Sequence& scored = add(scheduler, pool, 20, 100, true);
  scheduler.plan({.while_streaming = 12, .alone = 12});
  EXPECT_EQ(plain.planned_rows, 12u);
  EXPECT_EQ(scored.planned_rows, 0u) << "the budget is spent";
}

TEST_F(SchedulerTest, AScoredPromptThatCameBackRunsWhatItHasScoredInSilence) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 2, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& scored = add(scheduler, pool, 20, 100, true);
  for (int i = 0; i < 3; ++i) {
    scheduler.plan();
    commit(scheduler);
  }
  EXPECT_EQ(scored.progress.num_scored(), 6u);
  scheduler.remove(scored);
  scored.release_blocks();
  scored.state = State::kWaiting;
  scheduler.add(scored);
  const flow::StepPlan& plan = scheduler.plan();
  ASSERT_EQ(plan.sequences.size(), 1u);
  EXPECT_EQ(plan.sequences[0].num_rows, 8u);
  EXPECT_EQ(plan.sequences[0].given.size(), 2u);
  EXPECT_EQ(plan.sequences[0].given[0], 7);
}

TEST_F(SchedulerTest, ThereIsARowOfLogitsForEveryPlace) {
  kv::BlockPool& pool = make_pool(16, 16);
  kv::PrefixIndex& index = index_of(pool);
  for (const std::uint32_t rows : {0u, 4u, 5u}) {
    Scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logits_rows = rows}, pool, index);
  }
  const SchedulerOptions too_few{.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logits_rows = 3};
  EXPECT_DEATH(Scheduler(too_few, pool, index), "CHECK failed");
}

}  // namespace
}  // namespace quire::schedule
