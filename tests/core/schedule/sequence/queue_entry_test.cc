#include "core/schedule/sequence/queue_entry.h"

#include <gtest/gtest.h>

namespace quire::schedule {
namespace {

using flow::WaitCause;

class QueueEntryTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
  QueueEntry entry_{SeqId(7), SeqId(7)};
};

TEST_F(QueueEntryTest, TheOrderIsThatOfArrivalAndNoEntryIsBeforeItself) {
  const QueueEntry later(SeqId(8), SeqId(8));
  EXPECT_TRUE(entry_.arrived_before(later));
  EXPECT_FALSE(later.arrived_before(entry_));
  EXPECT_FALSE(entry_.arrived_before(entry_));
}

TEST_F(QueueEntryTest, AForkComesBehindItsParentAndBeforeAllThatArrivedAfterThat) {
  const QueueEntry later(SeqId(8), SeqId(8));
  const QueueEntry fork(SeqId(9), entry_.arrival);
  EXPECT_TRUE(entry_.arrived_before(fork));
  EXPECT_TRUE(fork.arrived_before(later));
  EXPECT_TRUE(fork.arrived_before(QueueEntry(SeqId(10), entry_.arrival))) << "of two forks the older one";
}

TEST_F(QueueEntryTest, AdmissionBeginsAScheduledPeriodWithoutOutput) {
  entry_.note_admitted();
  EXPECT_TRUE(entry_.started);
  entry_.has_output = true;
  entry_.note_admitted();  // after a preemption
  EXPECT_TRUE(entry_.started);
  EXPECT_FALSE(entry_.has_output);
}

TEST_F(QueueEntryTest, ATokenIsChargedOnce) {
  EXPECT_EQ(entry_.charge(10), 10u);
  EXPECT_EQ(entry_.charge(9), 0u);
  EXPECT_EQ(entry_.charge(10), 0u);
  EXPECT_EQ(entry_.charge(11), 1u);
  EXPECT_EQ(entry_.charged_tokens, 11u);
}

TEST_F(QueueEntryTest, CachedTokensAreFree) {
  entry_.charged_tokens = 6;
  EXPECT_EQ(entry_.charge(10), 4u);
}

TEST_F(QueueEntryTest, ThePlanAfterTheArrivalFindsThatItWaitedForNothing) {
  entry_.added_in = 5;
  EXPECT_EQ(entry_.cause_of_wait(6, WaitCause::kBlocks), WaitCause::kNone);
  EXPECT_EQ(entry_.cause_of_wait(7, WaitCause::kBlocks), WaitCause::kBlocks);
}

TEST_F(QueueEntryTest, ThePrefixIsTheCauseIfThePlanBeforeLeftItWaitingForThat) {
  entry_.added_in = 5;
  entry_.prefix_wait_plan = 7;
  EXPECT_EQ(entry_.cause_of_wait(8, WaitCause::kRows), WaitCause::kPrefix);
  EXPECT_EQ(entry_.cause_of_wait(9, WaitCause::kRows), WaitCause::kRows) << "the last plan did not";
}

TEST_F(QueueEntryTest, AnEstimateHoldsForSoManyPlansAndNotOneMore) {
  EXPECT_FALSE(entry_.has_estimate(1, 16)) << "there is none yet";
  entry_.note_estimate(20, 48);
  EXPECT_EQ(entry_.estimated_hit, 48u);
  EXPECT_TRUE(entry_.has_estimate(20, 16));
  EXPECT_TRUE(entry_.has_estimate(35, 16));
  EXPECT_FALSE(entry_.has_estimate(36, 16));
}

TEST_F(QueueEntryTest, AnEstimateBeforeTheFirstPlanIsOne) {
  entry_.note_estimate(0, 3);
  EXPECT_TRUE(entry_.has_estimate(1, 16));
}

}  // namespace
}  // namespace quire::schedule
