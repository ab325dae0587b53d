#include "core/bridge/control_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/core/bridge/bells.h"

namespace quire::bridge {
namespace {

ControlOrder save(
    const std::string& path, std::function<void(Result<CacheReport>)> done = [](auto) {}) {
  return {ControlOrder::Kind::kSaveCache, path, std::move(done)};
}

TEST(ControlQueue, HandsOverAnOrderAndRings) {
  Doorbell bell;
  ControlQueue queue(bell);
  EXPECT_FALSE(queue.take());
  ASSERT_TRUE(queue.give({ControlOrder::Kind::kLoadCache, "a", [](auto) {}}).ok());
  EXPECT_TRUE(rings(bell));
  const std::optional<ControlOrder> order = queue.take();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->kind, ControlOrder::Kind::kLoadCache);
  EXPECT_EQ(order->path, "a");
  EXPECT_FALSE(queue.take()) << "an order is taken once";
}

TEST(ControlQueue, RefusesAnotherUntilTheFirstIsFinished) {
  Doorbell bell;
  ControlQueue queue(bell);
  ASSERT_TRUE(queue.give(save("a")).ok());
  EXPECT_TRUE(rings(bell));
  for (const bool taken : {false, true}) {
    if (taken) {
      EXPECT_TRUE(queue.take());
    }
    const Result<Done> second = queue.give(save("b"));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Code::kUnavailable);
    EXPECT_GT(second.error().retry_after_s, 0);
  }
  EXPECT_TRUE(silent(bell)) << "who is refused does not wake the engine";
  queue.finish();
  EXPECT_FALSE(queue.take()) << "a refused order leaves nothing behind";
  ASSERT_TRUE(queue.give(save("c")).ok());
  EXPECT_EQ(queue.take()->path, "c");
}

TEST(ControlQueue, ClosingAnswersTheOrderThatWaits) {
  Doorbell bell;
  ControlQueue queue(bell);
  std::vector<Code> answers;
  ASSERT_TRUE(queue.give(save("a", [&](Result<CacheReport> report) { answers.push_back(report.error().code); })).ok());
  queue.close();
  EXPECT_EQ(answers, std::vector<Code>{Code::kUnavailable});
  EXPECT_FALSE(queue.take());
  queue.close();
  EXPECT_EQ(answers.size(), 1u) << "answered once";
  EXPECT_EQ(queue.give(save("b")).error().code, Code::kUnavailable);
}

TEST(ControlQueue, ClosingLeavesTheOrderUnderWayToWhoTookIt) {
  Doorbell bell;
  ControlQueue queue(bell);
  int answers = 0;
  ASSERT_TRUE(queue.give(save("a", [&](Result<CacheReport>) { ++answers; })).ok());
  std::optional<ControlOrder> order = queue.take();
  queue.close();
  EXPECT_EQ(answers, 0);
  order->done(CacheReport{});
  queue.finish();
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(queue.give(save("b")).ok()) << "finishing does not open it again";
}

// Many ask at once: every order that was taken in is carried out once, and none of the others is.
TEST(ControlQueue, CarriesOutWhatItTookAndNothingElse) {
  Doorbell bell;
  ControlQueue queue(bell);
  constexpr int kAskers = 4;
  const int orders_each = 2000 / kStressDivisor;
  std::vector<int> accepted(kAskers, 0);
  std::vector<int> answered(kAskers, 0);  // written by the engine's side alone
  std::atomic<int> asking{kAskers};
  std::vector<std::jthread> askers;
  for (int i = 0; i < kAskers; ++i) {
    askers.emplace_back([&, i] {
      for (int k = 0; k < orders_each; ++k) {
        accepted[i] += queue.give(save("x", [&answered, i](Result<CacheReport>) { ++answered[i]; })).ok();
      }
      --asking;
      bell.ring();
    });
  }
  const auto work = [&] {
    if (const std::optional<ControlOrder> order = queue.take()) {
      order->done(CacheReport{});
      queue.finish();
    }
  };
  while (asking > 0) {
    ASSERT_TRUE(rings(bell));
    work();
  }
  askers.clear();
  work();
  EXPECT_EQ(answered, accepted);
  EXPECT_GT(accepted[0] + accepted[1] + accepted[2] + accepted[3], 0);
}

}  // namespace
}  // namespace quire::bridge
