#include "core/concurrent/fair_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/base/processor_time.h"
#include "tests/core/concurrent/stress.h"

namespace quire::concurrent {
namespace {

using Job = FairWorkers::Job;

void use_processor(std::chrono::milliseconds time) {
  for (const auto end = processor_time() + time; processor_time() < end;) continue;
}

// Every thread is busy until it is let go, with a caller of its own; what is posted meanwhile waits.
class Busy {
 public:
  explicit Busy(FairWorkers::Options options) : pool_(std::make_unique<FairWorkers>(options)) {
    std::latch begun(options.num_threads);
    for (std::uint32_t i = 0; i < options.num_threads; ++i) {
      const auto wait = [this, &begun](const Job&) {
        begun.count_down();
        open_.wait();
      };
      pool_->post("busy " + std::to_string(i), 0, wait, [] {});
    }
    begun.wait();
  }
  ~Busy() { finish(); }
  void finish() {
    if (!pool_) return;
    gate_.set_value();
    pool_.reset();
  }
  FairWorkers* operator->() { return pool_.get(); }

 private:
  std::promise<void> gate_;
  std::shared_future<void> open_ = gate_.get_future().share();
  std::unique_ptr<FairWorkers> pool_;
};

FairWorkers::Posted post(FairWorkers& pool, const std::string& caller, std::size_t bytes, std::function<void()> run) {
  return pool.post(
      caller, bytes, [run = std::move(run)](const Job&) { run(); }, [] {});
}

TEST(FairWorkers, ACallersJobsRunInTheOrderGiven) {
  std::vector<int> order;
  {
    FairWorkers pool({.num_threads = 2});
    for (int i = 0; i < 100; ++i) post(pool, "a", 1, [&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(FairWorkers, ItsEndRunsEverythingThatWaits) {
  std::atomic<int> ran{0};
  Busy pool({.num_threads = 2});
  for (int i = 0; i < 50; ++i) post(*pool.operator->(), i % 2 ? "a" : "b", 1, [&] { ++ran; });
  EXPECT_EQ(ran, 0);
  pool.finish();
  EXPECT_EQ(ran, 50);
}

TEST(FairWorkers, AJobOfAnotherCallerWaitsForOneJobAtMostHoweverManyACallerHas) {
  std::promise<void> first_runs;
  std::atomic<int> ran_of_many{0};
  std::atomic<int> ran_before{-1};
  {
    FairWorkers pool({.num_threads = 1});
    std::promise<void> gate;
    const std::shared_future<void> open = gate.get_future().share();
    post(pool, "many", 1, [&, open] {
      first_runs.set_value();
      open.wait();
      ++ran_of_many;
    });
    for (int i = 0; i < 100; ++i) {
      post(pool, "many", 1, [&] {
        use_processor(std::chrono::milliseconds(1));
        ++ran_of_many;
      });
    }
    first_runs.get_future().wait();
    post(pool, "one", 1, [&] { ran_before = ran_of_many.load(); });
    gate.set_value();
  }
  EXPECT_LE(ran_before, 2);
  EXPECT_EQ(ran_of_many, 101);
}

TEST(FairWorkers, TheTimeIsSharedByCallersAndNotByJobs) {
  std::mutex mutex;
  std::vector<std::string> order;
  Busy pool({.num_threads = 1});
  const auto add = [&](const std::string& caller, std::chrono::milliseconds time) {
    post(*pool.operator->(), caller, 1, [&, caller, time] {
      use_processor(time);
      const std::lock_guard lock(mutex);
      order.push_back(caller);
    });
  };
  for (int i = 0; i < 4; ++i) add("long", std::chrono::milliseconds(40));
  for (int i = 0; i < 12; ++i) add("short", std::chrono::milliseconds(4));
  pool.finish();
  // Behind its first job a caller of ten times the cost has one turn where the other has about ten.
  const auto second_long = std::find(std::find(order.begin(), order.end(), "long") + 1, order.end(), "long");
  EXPECT_GE(std::count(order.begin(), second_long, "short"), 6);
}

TEST(FairWorkers, OneCallerNeverHasAllThreads) {
  for (const std::uint32_t threads : {2u, 3u}) {
    std::atomic<int> running{0}, most{0};
    std::promise<void> gate;
    const std::shared_future<void> open = gate.get_future().share();
    std::latch begun(threads - 1);
    FairWorkers pool({.num_threads = threads});
    for (int i = 0; i < 10; ++i) {
      post(pool, "greedy", 1, [&, open, i] {
        most = std::max(most.load(), ++running);
        if (i < static_cast<int>(threads) - 1) begun.count_down();
        open.wait();
        --running;
      });
    }
    begun.wait();
    std::promise<void> served;
    post(pool, "another", 1, [&] { served.set_value(); });
    served.get_future().wait();
    EXPECT_EQ(most, static_cast<int>(threads) - 1);
    gate.set_value();
  }
}

TEST(FairWorkers, TakesBytesUpToItsLimitAndOfOneCallerThreeQuarters) {
  for (const std::size_t bytes : {74u, 75u, 76u}) {
    Busy pool({.num_threads = 1, .max_bytes = 100});
    EXPECT_EQ(post(*pool.operator->(), "a", 1, [] {}).full, FairWorkers::Full::kNo);
    EXPECT_EQ(post(*pool.operator->(), "a", bytes - 1, [] {}).full,
              bytes <= 75 ? FairWorkers::Full::kNo : FairWorkers::Full::kCaller);
  }
  for (const std::size_t bytes : {24u, 25u, 26u}) {
    Busy pool({.num_threads = 1, .max_bytes = 100});
    EXPECT_EQ(post(*pool.operator->(), "a", 75, [] {}).full, FairWorkers::Full::kNo);
    EXPECT_EQ(post(*pool.operator->(), "b", 1, [] {}).full, FairWorkers::Full::kNo);
    EXPECT_EQ(post(*pool.operator->(), "b", bytes - 1, [] {}).full,
              bytes <= 25 ? FairWorkers::Full::kNo : FairWorkers::Full::kAll);
    EXPECT_EQ(pool->figures().refused, bytes <= 25 ? 0u : 1u);
  }
}

TEST(FairWorkers, TakesJobsUpToItsLimitAndOfOneCallerThreeQuarters) {
  Busy pool({.num_threads = 1, .max_jobs = 9});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(post(*pool.operator->(), "a", 0, [] {}).full, FairWorkers::Full::kNo) << i;
  EXPECT_EQ(post(*pool.operator->(), "a", 0, [] {}).full, FairWorkers::Full::kCaller);
  EXPECT_EQ(post(*pool.operator->(), "b", 0, [] {}).full, FairWorkers::Full::kNo)
      << "the busy one is the first of nine";
  EXPECT_EQ(post(*pool.operator->(), "c", 0, [] {}).full, FairWorkers::Full::kAll);
}

TEST(FairWorkers, AnEmptyPoolTakesOneJobOfAnySize) {
  FairWorkers pool({.num_threads = 1, .max_bytes = 100});
  std::promise<void> done;
  EXPECT_EQ(post(pool, "a", 5000, [&] { done.set_value(); }).full, FairWorkers::Full::kNo);
  done.get_future().wait();
}

TEST(FairWorkers, AJobThatIsDroppedBeforeItBeginsNeverRunsAndGivesItsBytesBack) {
  Busy pool({.num_threads = 1, .max_bytes = 100});
  std::atomic<bool> ran{false};
  const auto posted = post(*pool.operator->(), "a", 75, [&] { ran = true; });
  EXPECT_TRUE(pool->drop(posted.ticket));
  EXPECT_EQ(post(*pool.operator->(), "a", 75, [] {}).full, FairWorkers::Full::kNo);
  EXPECT_EQ(pool->figures().bytes, 75u);
  pool.finish();
  EXPECT_FALSE(ran);
}

TEST(FairWorkers, AJobThatRunsLearnsThatItIsDropped) {
  FairWorkers pool({.num_threads = 1});
  std::promise<void> begun, ended;
  const auto posted = pool.post(
      "a", 1,
      [&](const Job& job) {
        begun.set_value();
        while (!job.dropped()) std::this_thread::yield();
        ended.set_value();
      },
      [] {});
  begun.get_future().wait();
  EXPECT_FALSE(pool.drop(posted.ticket));
  ended.get_future().wait();
}

TEST(FairWorkers, AJobThatThrowsEndsAlone) {
  FairWorkers pool({.num_threads = 1});
  std::promise<void> failed, after;
  pool.post(
      "a", 1, [](const Job&) { throw std::bad_alloc(); }, [&] { failed.set_value(); });
  failed.get_future().wait();
  post(pool, "a", 1, [&] { after.set_value(); });
  after.get_future().wait();
}

TEST(FairWorkers, CountsWhatItHoldsAndTheTimeThatJobsHad) {
  FairWorkers pool({.num_threads = 1});
  std::promise<void> done;
  post(pool, "a", 7, [&] { use_processor(std::chrono::milliseconds(5)); });
  post(pool, "a", 7, [&] { done.set_value(); });
  done.get_future().wait();
  const TimePoint lost = in(kLost);
  while (pool.figures().jobs > 0 && SteadyClock().now() < lost) std::this_thread::yield();
  EXPECT_EQ(pool.figures().jobs, 0u);
  EXPECT_EQ(pool.figures().bytes, 0u);
  EXPECT_GE(pool.figures().processor_s, 0.005);
}

TEST(FairWorkers, ManyPostersLoseNoJob) {
  constexpr int kEach = 10'000 / kStressDivisor;
  std::atomic<int> ran{0}, dropped{0};
  {
    FairWorkers pool({.num_threads = 3, .max_bytes = 256});
    std::vector<std::jthread> posters;
    for (int t = 0; t < 3; ++t) {
      posters.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          for (;;) {
            const auto posted = post(pool, "caller " + std::to_string(t), 1 + static_cast<std::size_t>(i % 7),
                                     [&] { ran.fetch_add(1, std::memory_order_relaxed); });
            if (posted.full != FairWorkers::Full::kNo) {
              std::this_thread::yield();
              continue;
            }
            if (i % 16 == 0 && pool.drop(posted.ticket)) dropped.fetch_add(1, std::memory_order_relaxed);
            break;
          }
        }
      });
    }
  }
  EXPECT_EQ(ran + dropped, 3 * kEach);
}

}  // namespace
}  // namespace quire::concurrent
