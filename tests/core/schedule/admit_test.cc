// What those that come in waited for, as the scheduler says.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/schedule/scheduler.h"

namespace quire::schedule {
namespace {

using flow::WaitCause;

class AdmitTest : public ::testing::Test {
 protected:
  void make(const SchedulerOptions& options, std::uint32_t num_blocks,
            std::vector<kv::CacheGroup> groups = {kv::CacheGroup{}}) {
    pool_ = std::make_unique<kv::BlockPool>(num_blocks, 16, std::move(groups));
    index_ = std::make_unique<kv::PrefixIndex>(*pool_, kv::PrefixIndexOptions{});
    scheduler_ = std::make_unique<Scheduler>(options, *pool_, *index_);
  }
  // Of tokens first, first + 1, …
  Sequence& add(std::uint32_t num_tokens, TokenId first, bool shares = false) {
    flow::Request request;
    for (std::uint32_t i = 0; i < num_tokens; ++i) request.prompt.push_back(first + static_cast<TokenId>(i));
    request.max_tokens = 8;
    if (shares) request.cache_namespace = CacheNamespace{};
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), *pool_));
    scheduler_->add(*sequences_.back());
    return *sequences_.back();
  }
  void step() {
    scheduler_->plan();
    for (Sequence* sequence : scheduler_->planned()) {
      const bool samples = sequence->samples(sequence->planned_rows);
      sequence->progress.commit(sequence->planned_rows);
      if (!samples) continue;
      sequence->note_output();
      sequence->append(7);
      sequence->prefix.publish(*index_, /*partial=*/false);
    }
  }

  RoleScope role_{engine_role};
  std::unique_ptr<kv::BlockPool> pool_;  // outlives the sequences
  std::unique_ptr<kv::PrefixIndex> index_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(AdmitTest, OneThatTheFirstPlanLetsInWaitedForNothing) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 64);
  step();  // plans before it came do not count
  step();
  Sequence& one = add(10, 0);
  step();
  EXPECT_TRUE(one.queue.started);
  EXPECT_EQ(one.queue.waited_for, WaitCause::kNone);
}

TEST_F(AdmitTest, OneThatFindsEveryPlaceTakenWaitsForAPlace) {
  make({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 64);
  Sequence& first = add(10, 0);
  step();
  Sequence& second = add(10, 100);
  step();
  EXPECT_FALSE(second.queue.started);
  scheduler_->remove(first);
  step();
  EXPECT_TRUE(second.queue.started);
  EXPECT_EQ(second.queue.waited_for, WaitCause::kPlaces);
}

TEST_F(AdmitTest, OneThatFindsTheStepFullWaitsForRows) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 16}, 64);
  add(32, 0);
  step();
  Sequence& second = add(10, 100);
  step();
  EXPECT_FALSE(second.queue.started) << "sixteen rows are the first one's";
  step();
  EXPECT_TRUE(second.queue.started);
  EXPECT_EQ(second.queue.waited_for, WaitCause::kRows);
}

TEST_F(AdmitTest, OneThatFindsTooFewBlocksWaitsForThem) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 4);
  Sequence& first = add(40, 0);
  step();
  Sequence& second = add(40, 100);
  step();
  EXPECT_FALSE(second.queue.started);
  scheduler_->remove(first);
  first.release_blocks();
  step();
  EXPECT_TRUE(second.queue.started);
  EXPECT_EQ(second.queue.waited_for, WaitCause::kBlocks);
}

TEST_F(AdmitTest, OneWhosePromptSomebodyIsComputingWaitsForThat) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 32}, 64);
  add(48, 0, /*shares=*/true);
  step();
  Sequence& second = add(48, 0, /*shares=*/true);
  step();
  EXPECT_FALSE(second.queue.started);
  step();
  EXPECT_TRUE(second.queue.started);
  EXPECT_EQ(second.queue.waited_for, WaitCause::kPrefix);
}

TEST_F(AdmitTest, TheCauseIsThatOfTheLastPlanThatLeftItWaiting) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 16}, 64);
  Sequence& first = add(10, 0);
  add(64, 100);
  step();
  Sequence& third = add(10, 300);
  step();  // every place is taken
  scheduler_->remove(first);
  while (!third.queue.started) step();  // the second one's prompt fills the steps
  EXPECT_EQ(third.queue.waited_for, WaitCause::kRows);
}

// 64 tokens of the window and 32 of a step: six blocks.
TEST_F(AdmitTest, AWindowsGroupReservesTheWindowAndAStepAndNotTheWholePrompt) {
  for (const auto& [num_tokens, num_blocks] : {std::pair(80u, 5u), std::pair(81u, 6u), std::pair(95u, 6u),
                                               std::pair(96u, 6u), std::pair(97u, 6u), std::pair(1000u, 6u)}) {
    sequences_.clear();
    make({.max_num_seqs = 2, .max_num_batched_tokens = 32}, 16, {{kv::CacheGroup::Kind::kWindow, 64}});
    add(num_tokens, 0);
    step();
    EXPECT_EQ(pool_->num_held(), num_blocks) << num_tokens;
  }
  sequences_.clear();
}

TEST_F(AdmitTest, AWindowsGroupIsAdmittedWithAsManyBlocksAsItReservesAndNotWithOneLess) {
  for (const std::uint32_t num_blocks : {5u, 6u, 7u}) {
    sequences_.clear();
    make({.max_num_seqs = 2, .max_num_batched_tokens = 32}, 16, {{kv::CacheGroup::Kind::kWindow, 64}});
    add(10, 0);
    step();
    kv::BlockTable others(*pool_);
    while (pool_->num_free() > num_blocks) others.extend(0);
    Sequence& second = add(1000, 2000);
    scheduler_->plan();
    EXPECT_EQ(second.queue.started, num_blocks >= 6) << num_blocks;
  }
  sequences_.clear();
}

TEST_F(AdmitTest, AFullGroupReservesTheWholePromptBesideAWindow) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 32}, 40, {kv::CacheGroup{}, {kv::CacheGroup::Kind::kWindow, 64}});
  add(400, 0);
  step();
  EXPECT_EQ(pool_->num_held(), 25u + 6u);
}

}  // namespace
}  // namespace quire::schedule
