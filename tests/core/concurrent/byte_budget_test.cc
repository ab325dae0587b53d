#include "core/concurrent/byte_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/core/concurrent/stress.h"

namespace quire::concurrent {
namespace {

TEST(ByteBudget, OneCallerHasThreeQuartersAtMostAndAllTogetherTheWhole) {
  for (const std::size_t bytes : {74u, 75u, 76u}) {
    ByteBudget budget(100);
    ByteBudget::Share share;
    EXPECT_EQ(budget.take(share, "a", bytes), bytes <= 75 ? ByteBudget::Full::kNo : ByteBudget::Full::kCaller) << bytes;
    EXPECT_EQ(budget.held(), bytes <= 75 ? bytes : 0u);
    EXPECT_EQ(budget.num_refused(), bytes <= 75 ? 0u : 1u);
  }
  for (const std::size_t bytes : {24u, 25u, 26u}) {
    ByteBudget budget(100);
    ByteBudget::Share a, b;
    EXPECT_EQ(budget.take(a, "a", 75), ByteBudget::Full::kNo);
    EXPECT_EQ(budget.take(b, "b", bytes), bytes <= 25 ? ByteBudget::Full::kNo : ByteBudget::Full::kAll) << bytes;
  }
}

TEST(ByteBudget, SharesOfOneCallerCountTogether) {
  ByteBudget budget(100);
  ByteBudget::Share first, second;
  EXPECT_EQ(budget.take(first, "a", 40), ByteBudget::Full::kNo);
  EXPECT_EQ(budget.take(second, "a", 36), ByteBudget::Full::kCaller);
  EXPECT_EQ(budget.take(second, "a", 35), ByteBudget::Full::kNo);
  first.give_back();
  EXPECT_EQ(budget.take(second, "a", 40), ByteBudget::Full::kNo);
  EXPECT_EQ(second.bytes(), 75u);
}

TEST(ByteBudget, WhatIsDroppedComesBackOnce) {
  ByteBudget budget(100);
  {
    ByteBudget::Share share;
    EXPECT_EQ(budget.take(share, "a", 50), ByteBudget::Full::kNo);
    ByteBudget::Share moved = std::move(share);
    EXPECT_EQ(moved.bytes(), 50u);
    moved.give_back();
    moved.give_back();
    EXPECT_EQ(budget.take(moved, "a", 10), ByteBudget::Full::kNo);
  }
  EXPECT_EQ(budget.held(), 0u);
}

TEST(ByteBudget, ManyThreadsGiveEverythingBack) {
  ByteBudget budget(1000);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&budget, t] {
        const std::string caller = "caller " + std::to_string(t % 2);
        for (int i = 0; i < 20'000 / kStressDivisor; ++i) {
          ByteBudget::Share share;
          budget.take(share, caller, static_cast<std::size_t>(i % 400));
          budget.take(share, caller, static_cast<std::size_t>(i % 300));
        }
      });
    }
  }
  EXPECT_EQ(budget.held(), 0u);
}

}  // namespace
}  // namespace quire::concurrent
