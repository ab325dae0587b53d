// What a step runs: whose rows, how many, and in which blocks.
#include "core/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "tests/core/schedule/scheduler_rig.h"

namespace quire::schedule {
namespace {

TEST_F(SchedulerTest, RunsEverybodyEachStepWhereThereAreRowsAndElseRoundRobin) {
  using Step = std::vector<std::uint64_t>;
  const std::vector<std::pair<std::uint32_t, std::vector<Step>>> expected = {
      {2, {{1, 2}, {3, 4}, {5, 1}, {2, 3}, {4, 5}}},
      {4, {{1, 2, 3, 4}, {5, 1, 2, 3}, {4, 5, 1, 2}}},
      {5, {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}},
      {6, {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}}};
  for (const auto& [rows, steps] : expected) {
    Crowd crowd(*this, 5, rows);
    for (const Step& step : steps) {
      Step ran = crowd.run();
      std::ranges::sort(ran);
      Step wanted = step;
      std::ranges::sort(wanted);
      EXPECT_EQ(ran, wanted) << rows << " rows";
    }
  }
}

TEST_F(SchedulerTest, NobodyIsPassedOverOrServedTwiceWhenSomebodyGoes) {
  for (const std::uint64_t goes : {1u, 2u, 3u, 5u}) {
    Crowd crowd(*this, 5, 2);
    EXPECT_EQ(crowd.run(), (std::vector<std::uint64_t>{1, 2}));
    crowd.remove(goes);
    std::vector<std::uint64_t> next;
    for (std::uint64_t one : {3u, 4u, 5u, 1u, 2u}) {
      if (one != goes) next.push_back(one);
    }
    for (int i = 0; i < 2; ++i) {
      std::vector<std::uint64_t> wanted = {next[2 * i], next[2 * i + 1]};
      std::ranges::sort(wanted);  // a plan's sequences are in the order of admission
      EXPECT_EQ(crowd.run(), wanted) << goes << " went";
    }
  }
}

TEST_F(SchedulerTest, WhoIsPausedIsPassedOverAndCostsNoRow) {
  Crowd crowd(*this, 5, 2);
  crowd.sequence(3).paused = true;
  EXPECT_EQ(crowd.run(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(crowd.run(), (std::vector<std::uint64_t>{4, 5}));
}

TEST_F(SchedulerTest, APromptHasHalfOfTheRowsWhereTheOthersAreServedRoundRobin) {
  for (const std::uint32_t rows : {2u, 3u, 4u, 7u}) {
    Crowd crowd(*this, 7, rows, /*places=*/1);
    Sequence& prompt = crowd.add(20);
    EXPECT_EQ(rows_of(crowd.plan(), prompt), rows / 2) << rows;
    EXPECT_EQ(crowd.num_planned(), rows - rows / 2 + 1) << rows;
    crowd.commit();
    EXPECT_EQ(rows_of(crowd.plan(), prompt), rows / 2) << rows;  // no longer waiting
  }
}

TEST_F(SchedulerTest, CutsAPromptIntoChunksOfTheBudgetAndOnlyTheLastOneSpeaks) {
  kv::BlockPool& pool = make_pool(16, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 16}, pool, index_of(pool));
  Sequence& sequence = add(scheduler, pool, 40);
  for (const auto& [first, rows, samples] : {std::tuple(0u, 16u, false), std::tuple(16u, 16u, false),
                                             std::tuple(32u, 8u, true), std::tuple(40u, 1u, true)}) {
    const flow::StepPlan& plan = scheduler.plan();
    ASSERT_EQ(plan.sequences.size(), 1u);
    EXPECT_EQ(plan.sequences[0].first_position, first);
    EXPECT_EQ(plan.sequences[0].num_rows, rows);
    EXPECT_EQ(plan.sequences[0].samples, samples);
    for (std::uint32_t row = 0; row < rows; ++row) {
      EXPECT_EQ(plan.positions[row], first + row);
      EXPECT_EQ(plan.slots[row], sequence.table.slot(0, first + row));
    }
    commit(scheduler);
  }
}

TEST_F(SchedulerTest, TheBudgetIsNeverPassedAndDecodesComeBeforeAnyChunk) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 4}, pool, index_of(pool));
  Sequence& long_prompt = add(scheduler, pool, 3);
  scheduler.plan();
  commit(scheduler);  // decodes from now on
  Sequence& late = add(scheduler, pool, 50);
  for (int step = 0; step < 10; ++step) {
    const flow::StepPlan& plan = scheduler.plan();
    EXPECT_LE(plan.tokens.size(), 4u);
    EXPECT_EQ(rows_of(plan, long_prompt), 1u);
    EXPECT_EQ(rows_of(plan, late), 3u);
    commit(scheduler);
  }
}

TEST_F(SchedulerTest, WhileSomebodyDecodesPromptsGetNoMoreRowsThanTheEngineAllows) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& first = add(scheduler, pool, 100);
  EXPECT_EQ(rows_of(scheduler.plan({.while_streaming = 5}), first), 64u) << "nobody decodes: nobody waits";
  commit(scheduler);
  scheduler.plan({.while_streaming = 5});
  commit(scheduler);
  Sequence& second = add(scheduler, pool, 100);
  for (const std::uint32_t limit : {0u, 1u, 5u, 62u, 63u, 64u, ~0u}) {
    const flow::StepPlan& plan = scheduler.plan({.while_streaming = limit});
    EXPECT_EQ(rows_of(plan, first), 1u);
    EXPECT_EQ(rows_of(plan, second), std::clamp(limit, 1u, std::min(63u, second.remaining()))) << limit;
    scheduler.remove(second);
    second.release_blocks();
    second.state = State::kWaiting;
    scheduler.add(second);
  }
}

TEST_F(SchedulerTest, WhatPromptsMayNotHaveIsThereForDrafts) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logits_rows = 64}, pool, index_of(pool));
  Sequence& drafted = add(scheduler, pool, 3);
  scheduler.plan();
  commit(scheduler);
  Sequence& prompt = add(scheduler, pool, 100);
  for (const std::uint32_t nodes : {1u, 19u, 20u, 30u}) {
    drafted.draft.clear();
    for (std::uint32_t i = 0; i < nodes; ++i) drafted.draft.add(7, static_cast<int>(i) - 1);
    const flow::StepPlan& plan = scheduler.plan({.while_streaming = 12});
    EXPECT_EQ(rows_of(plan, prompt), 12u);
    EXPECT_EQ(rows_of(plan, drafted), 1u + std::min(nodes, 19u)) << nodes;
    scheduler.remove(prompt);
    drafted.table.shrink_to(drafted.progress.computed());
    prompt.release_blocks();
    prompt.state = State::kWaiting;
    scheduler.add(prompt);
  }
}

TEST_F(SchedulerTest, AdmitsWhenTheBlocksForThePromptAreFreeAndStrictlyInOrder) {
  kv::BlockPool& pool = make_pool(4, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 256}, pool, index_of(pool));
  Sequence& first = add(scheduler, pool, 40);   // 3 blocks
  Sequence& second = add(scheduler, pool, 20);  // 2 blocks: must wait
  Sequence& third = add(scheduler, pool, 5);    // would fit, does not overtake
  scheduler.plan();
  commit(scheduler);
  EXPECT_EQ(first.state, State::kRunning);
  EXPECT_EQ(second.state, State::kWaiting);
  EXPECT_EQ(third.state, State::kWaiting);
  scheduler.remove(first);
  first.table.give_back_all();
  scheduler.plan();
  EXPECT_EQ(second.state, State::kRunning);
  EXPECT_EQ(third.state, State::kRunning);
}

TEST_F(SchedulerTest, RunsNoMoreSequencesThanAllowed) {
  for (const std::uint32_t limit : {1u, 2u, 3u}) {
    kv::BlockPool& pool = make_pool(16, 16);
    Scheduler scheduler({.max_num_seqs = limit, .max_num_batched_tokens = 64}, pool, index_of(pool));
    for (int i = 0; i < 4; ++i) add(scheduler, pool, 2);
    scheduler.plan();
    EXPECT_EQ(scheduler.running().size(), limit);
    EXPECT_EQ(scheduler.num_waiting(), 4 - limit);
    for (Sequence* sequence : scheduler.running()) sequence->table.give_back_all();
    sequences_.clear();
  }
}

TEST_F(SchedulerTest, NoSlotOccursTwiceAndEveryTableCoversItsRows) {
  kv::BlockPool& pool = make_pool(12, 4);
  Scheduler scheduler({.max_num_seqs = 5, .max_num_batched_tokens = 9}, pool, index_of(pool));
  for (std::uint32_t i = 0; i < 5; ++i) add(scheduler, pool, 1 + 3 * i, 40);
  for (int step = 0; step < 200; ++step) {
    const flow::StepPlan& plan = scheduler.plan();
    ASSERT_FALSE(plan.empty());
    ASSERT_EQ(plan.tokens.size(), plan.slots.size());
    std::set<std::uint32_t> slots(plan.slots.begin(), plan.slots.end());
    EXPECT_EQ(slots.size(), plan.slots.size());
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
      const auto& entry = plan.sequences[i];
      EXPECT_GE(entry.num_table * 4, entry.first_position + entry.num_rows);
      EXPECT_EQ(plan.block_tables[entry.first_table], scheduler.planned()[i]->table.blocks()[0]);
    }
    commit(scheduler);
    for (const auto& sequence : sequences_) {
      if (sequence->state == State::kRunning && sequence->num_tokens() >= 45) {
        scheduler.remove(*sequence);
        sequence->table.give_back_all();
      }
    }
    pool.check_invariants();
    if (scheduler.running().empty() && scheduler.num_waiting() == 0) break;
  }
}

TEST_F(SchedulerTest, PlanningDoesNotAllocateOnceItHasWarmedUp) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 8, .max_num_batched_tokens = 32}, pool, index_of(pool));
  for (int i = 0; i < 8; ++i) add(scheduler, pool, 4);
  scheduler.plan();
  commit(scheduler);
  const flow::StepPlan& plan = scheduler.plan();
  const void* before[] = {plan.tokens.data(), plan.slots.data(), plan.block_tables.data(), plan.sequences.data()};
  for (int step = 0; step < 20; ++step) {
    commit(scheduler);
    scheduler.plan();
  }
  const void* after[] = {plan.tokens.data(), plan.slots.data(), plan.block_tables.data(), plan.sequences.data()};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(before[i], after[i]);
}

// ---- prompts that are scored: all their rows want logits

}  // namespace
}  // namespace quire::schedule
