#include "core/concurrent/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/concurrent/stress.h"

namespace quire::concurrent {
namespace {

// A pool of one thread that is busy until it is let go: what is posted meanwhile waits.
class BusyPool {
 public:
  BusyPool(std::size_t max_bytes, std::size_t bytes) : pool_(std::make_unique<WorkerPool>(1, max_bytes)) {
    EXPECT_TRUE(pool_->post(bytes, [this] {
      running_.count_down();
      let_go_.wait();
    }));
    running_.wait();
  }
  ~BusyPool() { finish(); }
  void finish() {
    if (pool_ == nullptr) return;
    let_go_.count_down();
    pool_.reset();
  }
  WorkerPool* operator->() { return pool_.get(); }

 private:
  std::latch running_{1};
  std::latch let_go_{1};
  std::unique_ptr<WorkerPool> pool_;
};

TEST(WorkerPool, ThreadsAreNamedForWhoeverLooksAtTheProcess) {
  std::string name;
  BusyPool(1, 1)->post(0, [&name] { std::getline(std::ifstream("/proc/thread-self/comm"), name); });
  EXPECT_EQ(name, "quire-worker");
}

TEST(WorkerPool, OneThreadRunsJobsInTheOrderGiven) {
  std::vector<int> order;  // plain: one thread writes, the join shows it
  {
    WorkerPool pool(1, 1000);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.post(1, [&order, i] { order.push_back(i); }));
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(WorkerPool, ItsEndRunsEverythingThatWaits) {
  std::atomic<int> ran{0};
  BusyPool pool(1000, 1);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool->post(1, [&] { ++ran; }));
  EXPECT_EQ(ran, 0);
  pool.finish();
  EXPECT_EQ(ran, 50);
}

TEST(WorkerPool, TakesBytesUpToItsBudgetAndNotOneMore) {
  for (const std::size_t bytes : {59u, 60u, 61u}) {
    BusyPool pool(100, 40);
    bool ran = false;
    EXPECT_EQ(pool->post(bytes, [&] { ran = true; }), bytes <= 60) << bytes;
    pool.finish();
    EXPECT_EQ(ran, bytes <= 60) << bytes;
  }
}

TEST(WorkerPool, ARefusedJobLeavesRoomForASmallerOne) {
  BusyPool pool(100, 40);
  EXPECT_FALSE(pool->post(61, [] {}));
  EXPECT_TRUE(pool->post(60, [] {}));
  EXPECT_FALSE(pool->post(1, [] {}));
}

TEST(WorkerPool, AnIdlePoolTakesAnySingleJob) {
  BusyPool pool(100, 5000);
  EXPECT_FALSE(pool->post(1, [] {}));
}

TEST(WorkerPool, BytesComeBackAfterTheJobAndWhatItHeldAreGone) {
  WorkerPool pool(1, 100);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  ASSERT_TRUE(pool.post(100, [held = std::move(held)] {}));
  const TimePoint lost = in(kLost);
  while (!pool.post(1, [] {})) {
    ASSERT_LT(SteadyClock().now(), lost);
    std::this_thread::yield();
  }
  EXPECT_TRUE(watch.expired());
}

TEST(WorkerPool, AJobMayPostAnother) {
  std::atomic<int> ran{0};
  std::latch second(1);
  WorkerPool pool(2, 100);
  ASSERT_TRUE(pool.post(1, [&] {
    ++ran;
    EXPECT_TRUE(pool.post(1, [&] {
      ++ran;
      second.count_down();
    }));
  }));
  second.wait();
  EXPECT_EQ(ran, 2);
}

TEST(WorkerPool, ManyPostersLoseNoJob) {
  constexpr int kEach = 20'000 / kStressDivisor;
  std::atomic<int> ran{0};
  {
    WorkerPool pool(3, 64);
    std::vector<std::jthread> posters;
    for (int t = 0; t < 3; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          while (
              !pool.post(1 + static_cast<std::size_t>(i % 7), [&] { ran.fetch_add(1, std::memory_order_relaxed); })) {
            std::this_thread::yield();
          }
        }
      });
    }
  }
  EXPECT_EQ(ran, 3 * kEach);
}

}  // namespace
}  // namespace quire::concurrent
