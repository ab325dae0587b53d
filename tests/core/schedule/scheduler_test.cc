#include "core/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>

namespace quire::schedule {
namespace {

class SchedulerTest : public testing::Test {
 protected:
  Sequence& add(Scheduler& scheduler, kv::BlockPool& pool, std::uint32_t prompt, std::uint32_t max_tokens = 100,
                bool scores_prompt = false, flow::Pooling pooling = flow::Pooling::kNone) {
    flow::Request request;
    request.pooling = pooling;
    request.scores_prompt = scores_prompt;
    request.prompt.resize(prompt);
    std::iota(request.prompt.begin(), request.prompt.end(), 0);
    request.max_tokens = max_tokens;
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool));
    scheduler.add(*sequences_.back());
    return *sequences_.back();
  }
  // What the engine does with a plan: rows are stored, whoever spoke gets a token.
  void commit(Scheduler& scheduler) {
    for (Sequence* sequence : scheduler.planned()) {
      const bool speaks = sequence->speaks(sequence->planned_rows);
      const std::uint32_t num_pooled = sequence->num_pooled(sequence->planned_rows);
      const std::uint32_t num_scores = sequence->num_speaking(sequence->planned_rows) - (speaks ? 1 : 0);
      sequence->commit_rows(sequence->planned_rows);
      for (std::uint32_t i = 0; i < num_scores; ++i) sequence->commit_score();
      sequence->commit_pooled(num_pooled);
      if (!speaks) continue;
      sequence->hear();
      sequence->append(7);
    }
  }
  // Rows that `sequence` has in the plan.
  static std::uint32_t rows_of(const flow::StepPlan& plan, const Sequence& sequence) {
    for (const auto& entry : plan.sequences) {
      if (entry.seq == sequence.id()) return entry.num_rows;
    }
    return 0;
  }

  kv::BlockPool& make_pool(std::uint32_t num_blocks, std::uint32_t block_tokens) {
    pools_.push_back(std::make_unique<kv::BlockPool>(num_blocks, block_tokens));
    return *pools_.back();
  }

  kv::PrefixIndex& index_of(kv::BlockPool& pool) {
    indices_.push_back(std::make_unique<kv::PrefixIndex>(pool, kv::PrefixIndexOptions{}));
    return *indices_.back();
  }

  // So many sequences that decode, named 1 and on, and room for some more.
  class Crowd {
   public:
    Crowd(SchedulerTest& test, std::uint32_t num_sequences, std::uint32_t rows, std::uint32_t places = 0)
        : test_(test),
          pool_(test.make_pool(64, 16)),
          scheduler_({.max_num_seqs = num_sequences + places, .max_num_batched_tokens = rows}, pool_,
                     test.index_of(pool_)) {
      test.sequences_.clear();
      for (std::uint32_t i = 0; i < num_sequences; ++i) add(1);
      while (std::ranges::any_of(test.sequences_, [](const auto& one) { return one->num_generated() == 0; })) run();
      std::vector<std::uint64_t> last;  // until the next turn is the first one's again
      while (last.empty() || last.back() != num_sequences || last.front() + last.size() != num_sequences + 1)
        last = run();
    }
    Sequence& add(std::uint32_t prompt) { return test_.add(scheduler_, pool_, prompt); }
    Sequence& sequence(std::uint64_t name) { return *test_.sequences_.at(name - 1); }
    void remove(std::uint64_t name) { scheduler_.remove(sequence(name)); }
    const flow::StepPlan& plan() { return scheduler_.plan(); }
    std::size_t num_planned() const { return scheduler_.planned().size(); }
    void commit() { test_.commit(scheduler_); }
    // Who was in the step, in the order of the plan.
    std::vector<std::uint64_t> run() {
      std::vector<std::uint64_t> names;
      for (const auto& entry : plan().sequences) names.push_back(entry.seq.value);
      commit();
      return names;
    }

   private:
    SchedulerTest& test_;
    kv::BlockPool& pool_;
    Scheduler scheduler_;
  };

  RoleScope role_{engine_role};
  std::vector<std::unique_ptr<kv::BlockPool>> pools_;  // outlive the sequences
  std::vector<std::unique_ptr<kv::PrefixIndex>> indices_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

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

TEST_F(SchedulerTest, WhoIsParkedIsPassedOverAndCostsNoRow) {
  Crowd crowd(*this, 5, 2);
  crowd.sequence(3).parked = true;
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
  for (const auto& [first, rows, speaks] : {std::tuple(0u, 16u, false), std::tuple(16u, 16u, false),
                                            std::tuple(32u, 8u, true), std::tuple(40u, 1u, true)}) {
    const flow::StepPlan& plan = scheduler.plan();
    ASSERT_EQ(plan.sequences.size(), 1u);
    EXPECT_EQ(plan.sequences[0].first_position, first);
    EXPECT_EQ(plan.sequences[0].num_rows, rows);
    EXPECT_EQ(plan.sequences[0].speaks, speaks);
    for (std::uint32_t row = 0; row < rows; ++row) {
      EXPECT_EQ(plan.positions[row], first + row);
      EXPECT_EQ(plan.slots[row], sequence.table.slot(first + row));
    }
    commit(scheduler);
  }
}

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
      EXPECT_FALSE(plan.sequences[0].speaks);
      EXPECT_TRUE(plan.sequences[0].given.empty());
      commit(scheduler);
    }
    EXPECT_EQ(pooled.remaining(), 0u);
    scheduler.remove(pooled);
    EXPECT_TRUE(scheduler.plan().empty());
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
    second.forget_computed();
    second.state = State::kWaiting;
    scheduler.add(second);
  }
}

TEST_F(SchedulerTest, WhatPromptsMayNotHaveIsThereForDrafts) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logit_rows = 64}, pool, index_of(pool));
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
    drafted.table.shrink_to(drafted.computed());
    prompt.forget_computed();
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
    EXPECT_EQ(scheduler.waiting().size(), 4 - limit);
    for (Sequence* sequence : scheduler.running()) sequence->table.give_back_all();
    sequences_.clear();
  }
}

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
  EXPECT_EQ(newest.computed(), 0u);
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
  EXPECT_TRUE(plan.sequences[0].speaks);
}

TEST_F(SchedulerTest, AParkedSequenceIsNotPlannedAndHoldsNobodyUpInTheLine) {
  kv::BlockPool& pool = make_pool(8, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& running = add(scheduler, pool, 4);
  scheduler.plan();
  commit(scheduler);
  running.parked = true;
  Sequence& parked = add(scheduler, pool, 4);
  parked.parked = true;
  Sequence& ready = add(scheduler, pool, 4);
  const flow::StepPlan& plan = scheduler.plan();
  EXPECT_EQ(rows_of(plan, running), 0u);
  EXPECT_EQ(parked.state, State::kWaiting);
  EXPECT_EQ(rows_of(plan, ready), 4u);
}

TEST_F(SchedulerTest, AParkedSequenceGivesUpItsPlaceToWhoeverWaits) {
  kv::BlockPool& pool = make_pool(8, 4);
  Scheduler scheduler({.max_num_seqs = 1, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& parked = add(scheduler, pool, 4);
  scheduler.plan();
  commit(scheduler);
  parked.parked = true;
  Sequence& ready = add(scheduler, pool, 4);
  EXPECT_EQ(rows_of(scheduler.plan(), ready), 4u);
  EXPECT_EQ(parked.state, State::kWaiting);
  EXPECT_TRUE(parked.table.blocks().empty());
  commit(scheduler);
  scheduler.remove(ready);
  ready.table.give_back_all();
  EXPECT_TRUE(scheduler.plan().empty()) << "it stays out until its client reads";
  parked.parked = false;
  EXPECT_EQ(rows_of(scheduler.plan(), parked), 5u);
}

TEST_F(SchedulerTest, ADryPoolTakesFromTheParkedBeforeItTakesFromTheNewest) {
  kv::BlockPool& pool = make_pool(4, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& parked = add(scheduler, pool, 8);
  Sequence& newest = add(scheduler, pool, 8);
  scheduler.plan();  // 2 + 2 blocks: full
  commit(scheduler);
  parked.parked = true;
  EXPECT_EQ(rows_of(scheduler.plan(), newest), 1u) << "the oldest holds its blocks for nobody";
  EXPECT_EQ(parked.state, State::kWaiting);
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
    if (scheduler.running().empty() && scheduler.waiting().size() == 0) break;
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

TEST_F(SchedulerTest, AScoredPromptIsCutByTheRowsOfLogits) {
  kv::BlockPool& pool = make_pool(16, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logit_rows = 6}, pool, index_of(pool));
  Sequence& sequence = add(scheduler, pool, 14, 100, true);
  for (const auto& [rows, given, speaks] :
       {std::tuple(6u, 6u, false), std::tuple(6u, 6u, false), std::tuple(2u, 1u, true), std::tuple(1u, 0u, true)}) {
    const flow::StepPlan& plan = scheduler.plan();
    ASSERT_EQ(plan.sequences.size(), 1u);
    EXPECT_EQ(plan.sequences[0].num_rows, rows);
    ASSERT_EQ(plan.sequences[0].given.size(), given);
    for (std::size_t i = 0; i < given; ++i) {
      EXPECT_EQ(plan.sequences[0].given[i], static_cast<TokenId>(plan.sequences[0].first_position + i + 1));
    }
    EXPECT_EQ(plan.sequences[0].speaks, speaks);
    commit(scheduler);
  }
  EXPECT_EQ(sequence.num_scored(), 13u);
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
  EXPECT_EQ(scored.num_scored(), 6u);
  scheduler.remove(scored);
  scored.forget_computed();
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
    Scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logit_rows = rows}, pool, index);
  }
  const SchedulerOptions too_few{.max_num_seqs = 4, .max_num_batched_tokens = 32, .max_logit_rows = 3};
  EXPECT_DEATH(Scheduler(too_few, pool, index), "CHECK failed");
}

}  // namespace
}  // namespace quire::schedule
