#include "core/concurrent/batch_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/core/concurrent/stress.h"

namespace quire::concurrent {
namespace {

using namespace std::chrono_literals;

TEST(BatchQueue, TakesWhatItHasRoomForAndNotOneMore) {
  constexpr int kRoom = 3;
  BatchQueue<int> queue(kRoom);
  for (int i = 0; i < kRoom + 2; ++i) EXPECT_EQ(queue.put(i), i < kRoom) << i;
  EXPECT_EQ(queue.take(kRoom, 0ms), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(queue.put(5)) << "there is room again";
}

TEST(BatchQueue, GivesBatchesOfAtMostSoManyOldestFirst) {
  BatchQueue<int> queue(16);
  for (int i = 0; i < 7; ++i) queue.put(i);
  EXPECT_EQ(queue.take(3, kLost), (std::vector<int>{0, 1, 2})) << "a full batch waits for nothing";
  EXPECT_EQ(queue.take(3, kLost), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(queue.take(3, 0ms), (std::vector<int>{6}));
}

TEST(BatchQueue, WhatIsThereAtTheCloseCanStillBeTakenAndNothingNewComes) {
  BatchQueue<int> queue(16);
  queue.put(1);
  queue.put(2);
  queue.close();
  EXPECT_FALSE(queue.put(3));
  EXPECT_EQ(queue.take(1, kLost), (std::vector<int>{1}));
  EXPECT_EQ(queue.take(5, kLost), (std::vector<int>{2}));
  EXPECT_TRUE(queue.take(5, kLost).empty());
  queue.pause(kLost);  // returns
}

TEST(BatchQueue, ATakerIsWokenByAFullBatchAndByTheClose) {
  BatchQueue<std::unique_ptr<int>> queue(16);
  std::atomic<std::size_t> taken{0};
  std::thread taker([&] {
    for (;;) {
      const auto batch = queue.take(2, kLost);
      if (batch.empty()) return;
      taken += batch.size();
    }
  });
  for (int i = 0; i < 4; ++i) queue.put(std::make_unique<int>(i));
  spin_until([&] { return taken == 4; });
  queue.put(std::make_unique<int>(4));
  queue.close();
  taker.join();
  EXPECT_EQ(taken, 5u);
}

TEST(BatchQueue, LosesAndRepeatsNothingThatManyThreadsPut) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20000 / kStressDivisor;
  BatchQueue<int> queue(64);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&queue, t] {
      for (int i = 0; i < kEach; ++i) {
        while (!queue.put(t * kEach + i)) std::this_thread::yield();
      }
    });
  }
  std::vector<int> last(kThreads, -1);
  int num_taken = 0;
  while (num_taken < kThreads * kEach) {
    const std::vector<int> batch = queue.take(10, 1ms);
    ASSERT_LE(batch.size(), 10u);
    for (const int value : batch) {
      EXPECT_GT(value % kEach, last[static_cast<std::size_t>(value / kEach)]) << "each thread's in its order";
      last[static_cast<std::size_t>(value / kEach)] = value % kEach;
    }
    num_taken += static_cast<int>(batch.size());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_taken, kThreads * kEach);
}

}  // namespace
}  // namespace quire::concurrent
