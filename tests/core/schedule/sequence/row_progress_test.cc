#include "core/schedule/sequence/row_progress.h"

#include <gtest/gtest.h>

namespace quire::schedule {
namespace {

class RowProgressTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
  RowProgress progress_;
};

TEST_F(RowProgressTest, TheNextPositionIsBehindTheRowsInFlight) {
  progress_.launch(5, /*samples=*/false);
  progress_.launch(3, /*samples=*/true);
  EXPECT_EQ(progress_.computed(), 0u);
  EXPECT_EQ(progress_.num_in_flight(), 8u);
  EXPECT_EQ(progress_.next_position(), 8u);
  EXPECT_EQ(progress_.num_awaited(), 1u);
}

TEST_F(RowProgressTest, ARowThatLandsIsComputedOnceItIsCommitted) {
  progress_.launch(5, /*samples=*/true);
  progress_.land(5, /*samples=*/true);
  EXPECT_EQ(progress_.num_in_flight(), 0u);
  EXPECT_EQ(progress_.num_awaited(), 0u);
  EXPECT_EQ(progress_.next_position(), 0u);
  progress_.commit(5);
  EXPECT_EQ(progress_.computed(), 5u);
  EXPECT_EQ(progress_.next_position(), 5u);
}

TEST_F(RowProgressTest, TheOldestStepLandsAloneWhileTheNextOneRuns) {
  progress_.launch(5, /*samples=*/true);
  progress_.launch(1, /*samples=*/true);
  progress_.land(5, /*samples=*/true);
  progress_.commit(5);
  EXPECT_EQ(progress_.num_in_flight(), 1u);
  EXPECT_EQ(progress_.num_awaited(), 1u);
  EXPECT_EQ(progress_.next_position(), 6u);
}

TEST_F(RowProgressTest, OfADeviceThatFailedNoRowIsInFlightAndNoTokenIsAwaited) {
  progress_.commit(2);
  progress_.launch(5, /*samples=*/true);
  progress_.launch(1, /*samples=*/true);
  progress_.land_all();
  EXPECT_EQ(progress_.num_in_flight(), 0u);
  EXPECT_EQ(progress_.num_awaited(), 0u);
  EXPECT_EQ(progress_.computed(), 2u);
}

TEST_F(RowProgressTest, ARewoundRowIsComputedAgainAndIsNotScoredAgain) {
  progress_.commit(8);
  progress_.commit_scored(6);
  progress_.rewind(3);
  EXPECT_EQ(progress_.computed(), 3u);
  EXPECT_EQ(progress_.num_scored(), 6u);
  progress_.commit_scored(1);
  EXPECT_EQ(progress_.num_scored(), 7u);
}

}  // namespace
}  // namespace quire::schedule
