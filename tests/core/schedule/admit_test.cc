// What those that come in waited for, as the scheduler says.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/schedule/scheduler.h"

namespace quire::schedule {
namespace {

using flow::WaitCause;

class AdmitTest : public ::testing::Test {
 protected:
  void make(const SchedulerOptions& options, std::uint32_t num_blocks) {
    pool_ = std::make_unique<kv::BlockPool>(num_blocks, 16);
    index_ = std::make_unique<kv::PrefixIndex>(*pool_, kv::PrefixIndexOptions{});
    scheduler_ = std::make_unique<Scheduler>(options, *pool_, *index_);
  }
  // Of tokens first, first + 1, …
  Sequence& add(std::uint32_t num_tokens, TokenId first, bool shares = false) {
    flow::Request request;
    for (std::uint32_t i = 0; i < num_tokens; ++i) request.prompt.push_back(first + static_cast<TokenId>(i));
    request.max_tokens = 8;
    if (shares) request.cache_root = CacheRoot{};
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), *pool_));
    scheduler_->add(*sequences_.back());
    return *sequences_.back();
  }
  void step() {
    scheduler_->plan();
    for (Sequence* sequence : scheduler_->planned()) {
      const bool speaks = sequence->speaks(sequence->planned_rows);
      sequence->commit_rows(sequence->planned_rows);
      if (!speaks) continue;
      sequence->hear();
      sequence->append(7);
      sequence->publish_prefix(*index_, /*tail=*/false);
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
  EXPECT_TRUE(one.started);
  EXPECT_EQ(one.waited_for, WaitCause::kNone);
}

TEST_F(AdmitTest, OneThatFindsEveryPlaceTakenWaitsForAPlace) {
  make({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 64);
  Sequence& first = add(10, 0);
  step();
  Sequence& second = add(10, 100);
  step();
  EXPECT_FALSE(second.started);
  scheduler_->remove(first);
  step();
  EXPECT_TRUE(second.started);
  EXPECT_EQ(second.waited_for, WaitCause::kPlaces);
}

TEST_F(AdmitTest, OneThatFindsTheStepFullWaitsForRows) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 16}, 64);
  add(32, 0);
  step();
  Sequence& second = add(10, 100);
  step();
  EXPECT_FALSE(second.started) << "sixteen rows are the first one's";
  step();
  EXPECT_TRUE(second.started);
  EXPECT_EQ(second.waited_for, WaitCause::kRows);
}

TEST_F(AdmitTest, OneThatFindsTooFewBlocksWaitsForThem) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 4);
  Sequence& first = add(40, 0);
  step();
  Sequence& second = add(40, 100);
  step();
  EXPECT_FALSE(second.started);
  scheduler_->remove(first);
  first.forget_computed();
  step();
  EXPECT_TRUE(second.started);
  EXPECT_EQ(second.waited_for, WaitCause::kBlocks);
}

TEST_F(AdmitTest, OneWhosePromptSomebodyIsComputingWaitsForThat) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 32}, 64);
  add(48, 0, /*shares=*/true);
  step();
  Sequence& second = add(48, 0, /*shares=*/true);
  step();
  EXPECT_FALSE(second.started);
  step();
  EXPECT_TRUE(second.started);
  EXPECT_EQ(second.waited_for, WaitCause::kPrefix);
}

TEST_F(AdmitTest, TheCauseIsThatOfTheLastPlanThatLeftItWaiting) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 16}, 64);
  Sequence& first = add(10, 0);
  add(64, 100);
  step();
  Sequence& third = add(10, 300);
  step();  // every place is taken
  scheduler_->remove(first);
  while (!third.started) step();  // the second one's prompt fills the steps
  EXPECT_EQ(third.waited_for, WaitCause::kRows);
}

}  // namespace
}  // namespace quire::schedule
