// Plans that are made while a step is in flight.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "core/schedule/scheduler.h"

namespace quire::schedule {
namespace {

class PlanAhead : public ::testing::Test {
 protected:
  Sequence& add(Scheduler& scheduler, kv::BlockPool& pool, std::uint32_t prompt, std::uint32_t max_tokens = 100,
                bool scores_prompt = false) {
    flow::Request request;
    request.scores_prompt = scores_prompt;
    request.prompt.resize(prompt);
    std::iota(request.prompt.begin(), request.prompt.end(), 0);
    request.max_tokens = max_tokens;
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool));
    scheduler.add(*sequences_.back());
    return *sequences_.back();
  }
  kv::BlockPool& make_pool(std::uint32_t num_blocks, std::uint32_t block_tokens) {
    pool_ = std::make_unique<kv::BlockPool>(num_blocks, block_tokens);
    return *pool_;
  }
  kv::PrefixIndex& index_of(kv::BlockPool& pool) {
    index_ = std::make_unique<kv::PrefixIndex>(pool, kv::PrefixIndexOptions{});
    return *index_;
  }

  RoleScope role_{engine_role};
  std::unique_ptr<kv::BlockPool> pool_;
  std::unique_ptr<kv::PrefixIndex> index_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

void launch(Scheduler& scheduler, const flow::StepPlan& plan) {
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    scheduler.planned()[i]->progress.launch(plan.sequences[i].num_rows, plan.sequences[i].samples);
  }
}

TEST_F(PlanAhead, ARowWhoseTokenIsAwaitedNamesTheChoiceThatSaysIt) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64, .max_logits_rows = 16}, pool, index_of(pool));
  add(scheduler, pool, 5, 100, /*scores_prompt=*/true);  // four scores, and then a token
  Sequence& second = add(scheduler, pool, 3);
  Sequence& third = add(scheduler, pool, 7);
  launch(scheduler, scheduler.plan());
  const flow::StepPlan& plan = scheduler.plan();
  ASSERT_EQ(plan.sequences.size(), 2u) << "who is scored sits out";
  EXPECT_EQ(plan.sequences[0].seq, second.id());
  EXPECT_EQ(plan.sequences[0].fed_by, 5u);
  EXPECT_EQ(plan.sequences[0].first_position, 3u);
  EXPECT_EQ(plan.sequences[1].seq, third.id());
  EXPECT_EQ(plan.sequences[1].fed_by, 6u);
  EXPECT_EQ(plan.sequences[1].first_position, 7u);
  EXPECT_EQ(plan.tokens, (std::vector<TokenId>{-1, -1}));
  EXPECT_TRUE(plan.sequences[1].samples && plan.sequences[1].decodes);
}

TEST_F(PlanAhead, ThePlanInFlightStaysAsItIsWhileTheNextIsMade) {
  kv::BlockPool& pool = make_pool(64, 16);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& only = add(scheduler, pool, 100);
  const flow::StepPlan& first = scheduler.plan();
  const auto sequences = scheduler.planned();
  launch(scheduler, first);
  const flow::StepPlan& second = scheduler.plan();
  ASSERT_EQ(sequences.size(), 1u);
  EXPECT_EQ(sequences[0], &only);
  EXPECT_EQ(first.tokens.size(), 64u);
  EXPECT_EQ(first.sequences[0].first_position, 0u);
  EXPECT_EQ(second.tokens.size(), 36u);
  EXPECT_EQ(second.sequences[0].first_position, 64u);
  EXPECT_EQ(second.sequences[0].fed_by, flow::PlannedSequence::kNoChoice);
}

TEST_F(PlanAhead, WhoFindsNoRoomWhileAStepIsInFlightSendsNobodyBackAndLetsNobodyIn) {
  kv::BlockPool& pool = make_pool(4, 4);
  Scheduler scheduler({.max_num_seqs = 4, .max_num_batched_tokens = 64}, pool, index_of(pool));
  Sequence& older = add(scheduler, pool, 7, 9);
  Sequence& newer = add(scheduler, pool, 7, 9);
  launch(scheduler, scheduler.plan());
  launch(scheduler, scheduler.plan());  // the eighth rows: the blocks are full
  EXPECT_FALSE(scheduler.short_of_room());
  for (Sequence* one : {&older, &newer}) {
    one->progress.land(7, true);
    one->progress.commit(7);
    one->note_output();
    one->append(7);
  }
  Sequence& waiting = add(scheduler, pool, 1);
  EXPECT_TRUE(scheduler.plan().empty());
  EXPECT_TRUE(scheduler.short_of_room());
  EXPECT_EQ(newer.state, State::kRunning);
  EXPECT_EQ(waiting.state, State::kWaiting);
  for (Sequence* one : {&older, &newer}) {
    one->progress.land(1, true);
    one->progress.commit(1);
    one->append(7);
  }
  EXPECT_EQ(scheduler.plan().sequences.size(), 1u);
  EXPECT_FALSE(scheduler.short_of_room());
  EXPECT_EQ(newer.state, State::kWaiting);
}

}  // namespace
}  // namespace quire::schedule
