// Who is sent back when the pool is dry or a client does not read, and how it returns.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/schedule/scheduler.h"
#include "tests/core/schedule/scheduler_rig.h"

namespace quire::schedule {
namespace {

TEST_F(SchedulerTest, ADryPoolSendsTheNewestBackAndTheOldestGoesOn) {
  kv::BlockPool& pool = make_pool(4, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& oldest = add(scheduler, pool, 4);
  Sequence& middle = add(scheduler, pool, 4);
  Sequence& newest = add(scheduler, pool, 8);
  scheduler.plan();  // 1 + 1 + 2 blocks: full
  commit(scheduler);
  const flow::StepPlan& plan = scheduler.plan();  // each needs one more
  EXPECT_EQ(newest.state, State::kWaiting);
  EXPECT_EQ(newest.progress.computed(), 0u);
  EXPECT_EQ(newest.num_tokens(), 9u) << "what was said stays said";
  EXPECT_TRUE(newest.table.blocks().empty());
  EXPECT_EQ(rows_of(plan, oldest), 1u);
  EXPECT_EQ(rows_of(plan, middle), 1u);
  EXPECT_EQ(scheduler.num_preemptions(), 1u);
  ASSERT_EQ(scheduler.preempted().size(), 1u);
  EXPECT_EQ(scheduler.preempted()[0].sequence, &newest);
  EXPECT_FALSE(scheduler.preempted()[0].swapped);
  commit(scheduler);
  EXPECT_EQ(pool.num_free(), 0u);
  scheduler.plan();
  EXPECT_TRUE(scheduler.preempted().empty()) << "told once";
}

TEST_F(SchedulerTest, ASequenceSentBackStandsInFrontAndIsRecomputedWholeWhenItReturns) {
  kv::BlockPool& pool = make_pool(4, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& oldest = add(scheduler, pool, 8);
  Sequence& newest = add(scheduler, pool, 7);
  scheduler.plan();
  commit(scheduler);
  Sequence& waiting = add(scheduler, pool, 1);
  scheduler.plan();  // oldest needs a third block, newest's eighth token fits; then waiting finds none
  commit(scheduler);
  ASSERT_EQ(newest.state, State::kWaiting);
  ASSERT_EQ(waiting.state, State::kWaiting);
  scheduler.remove(oldest);
  oldest.table.give_back_all();
  const flow::StepPlan& plan = scheduler.plan();
  EXPECT_EQ(rows_of(plan, newest), 8u);
  EXPECT_EQ(plan.sequences[0].seq, newest.id());
  EXPECT_TRUE(plan.sequences[0].samples);
}

TEST_F(SchedulerTest, APausedSequenceIsNotPlannedAndHoldsNobodyUpInTheLine) {
  kv::BlockPool& pool = make_pool(8, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& running = add(scheduler, pool, 4);
  scheduler.plan();
  commit(scheduler);
  running.paused = true;
  Sequence& paused = add(scheduler, pool, 4);
  paused.paused = true;
  Sequence& ready = add(scheduler, pool, 4);
  const flow::StepPlan& plan = scheduler.plan();
  EXPECT_EQ(rows_of(plan, running), 0u);
  EXPECT_EQ(paused.state, State::kWaiting);
  EXPECT_EQ(rows_of(plan, ready), 4u);
}

TEST_F(SchedulerTest, APausedSequenceGivesUpItsPlaceToWhoeverWaits) {
  kv::BlockPool& pool = make_pool(8, 4);
  Scheduler scheduler({.max_num_seqs = 1, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& paused = add(scheduler, pool, 4);
  scheduler.plan();
  commit(scheduler);
  paused.paused = true;
  Sequence& ready = add(scheduler, pool, 4);
  EXPECT_EQ(rows_of(scheduler.plan(), ready), 4u);
  EXPECT_EQ(paused.state, State::kWaiting);
  EXPECT_TRUE(paused.table.blocks().empty());
  commit(scheduler);
  scheduler.remove(ready);
  ready.table.give_back_all();
  EXPECT_TRUE(scheduler.plan().empty()) << "it stays out until its client reads";
  paused.paused = false;
  EXPECT_EQ(rows_of(scheduler.plan(), paused), 5u);
}

TEST_F(SchedulerTest, ADryPoolTakesFromThePausedBeforeItTakesFromTheNewest) {
  kv::BlockPool& pool = make_pool(4, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& paused = add(scheduler, pool, 8);
  Sequence& newest = add(scheduler, pool, 8);
  scheduler.plan();  // 2 + 2 blocks: full
  commit(scheduler);
  paused.paused = true;
  EXPECT_EQ(rows_of(scheduler.plan(), newest), 1u) << "the oldest holds its blocks for nobody";
  EXPECT_EQ(paused.state, State::kWaiting);
}

}  // namespace
}  // namespace quire::schedule
