#include "core/bridge/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

namespace quire::bridge {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr TimePoint kStart = TimePoint{} + 1h;

std::shared_ptr<Account> account(AccountLimits limits) { return std::make_shared<Account>("alice", limits); }

// The words of a refusal; empty: it was let in, and goes at once.
std::string refusal(Account& account, Account::Demand demand, TimePoint now = kStart) {
  const auto admitted = account.take(demand, now);
  return admitted ? "" : admitted.error().param;
}

TEST(Account, WithoutLimitsEverythingPasses) {
  const auto free = account({});
  const auto held = free->take({1000, 1000, 1'000'000'000}, kStart);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->slots.size(), 1000u);
  EXPECT_EQ(refusal(*free, {1000, 1000, 1'000'000'000}), "");
}

TEST(Account, RunsUpToItsLimitAndNotOneSequenceMore) {
  for (const std::uint32_t first : {1u, 2u, 3u}) {
    const auto limited = account({.max_running = 3});
    const auto held = limited->take({first, first, 0}, kStart);
    ASSERT_TRUE(held) << first;
    EXPECT_EQ(refusal(*limited, {3 - first + 1, 0}), "max_running") << first;
    if (first == 3) continue;
    EXPECT_EQ(refusal(*limited, {3 - first, 0}), "") << first;
  }
}

TEST(Account, QueuesUpToItsLimitAndNotOneSequenceMore) {
  const auto limited = account({.max_queued = 3});
  auto held = limited->take({2, 2, 0}, kStart);
  ASSERT_TRUE(held);
  EXPECT_EQ(refusal(*limited, {1, 1, 0}), "");
  EXPECT_EQ(refusal(*limited, {2, 2, 0}), "max_queued");
  held->slots.pop_back();  // that one runs
  EXPECT_EQ(refusal(*limited, {2, 2, 0}), "");
  EXPECT_EQ(refusal(*limited, {3, 3, 0}), "max_queued");
  EXPECT_EQ(limited->figures().running, 2u);
  EXPECT_EQ(limited->figures().waiting, 1u);
}

TEST(Account, WhatCanNeverPassIsTheRequestsFault) {
  for (const AccountLimits limits : {AccountLimits{.max_running = 3}, AccountLimits{.max_queued = 3}}) {
    const auto limited = account(limits);
    EXPECT_TRUE(limited->take({3, 3, 0}, kStart));
    const auto refused = limited->take({4, 4, 0}, kStart);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("4 sequences"));
  }
}

TEST(Account, GivesAMinutesTokensAndNotOneMore) {
  const auto limited = account({.tokens_per_minute = 100});
  const auto held = limited->take({1, 1, 60}, kStart);
  ASSERT_TRUE(held);
  EXPECT_EQ(refusal(*limited, {1, 1, 39}), "");
  EXPECT_EQ(refusal(*limited, {1, 1, 40}), "");
  EXPECT_EQ(refusal(*limited, {1, 1, 41}), "tokens_per_minute");
}

TEST(Account, TheBucketFillsEvenlyAndNoHigherThanItsRim) {
  const auto limited = account({.tokens_per_minute = 60});
  auto held = limited->take({1, 1, 60}, kStart);
  ASSERT_TRUE(held);
  held->reservation.end(kStart, 30, 30);
  EXPECT_EQ(refusal(*limited, {1, 1, 10}, kStart + 9s), "tokens_per_minute");
  EXPECT_EQ(refusal(*limited, {1, 1, 10}, kStart + 10s), "");
  auto all = limited->take({1, 1, 60}, kStart + 1h);
  ASSERT_TRUE(all);
  EXPECT_EQ(refusal(*limited, {1, 1, 1}, kStart + 1h), "tokens_per_minute");
}

TEST(Account, WhatWasNotUsedComesBackAtTheEnd) {
  const auto limited = account({.tokens_per_minute = 100});
  auto held = limited->take({1, 1, 100}, kStart);
  ASSERT_TRUE(held);
  EXPECT_EQ(refusal(*limited, {1, 1, 1}), "tokens_per_minute");
  held->reservation.end(kStart, 20, 10);
  held->reservation.end(kStart, 20, 10);  // once is enough
  EXPECT_EQ(refusal(*limited, {1, 1, 70}), "");
  EXPECT_EQ(refusal(*limited, {1, 1, 71}), "tokens_per_minute");
  EXPECT_EQ(limited->figures().prompt_tokens, 20u);
  EXPECT_EQ(limited->figures().completion_tokens, 10u);
}

TEST(Account, ADroppedStayWasNeverThere) {
  const auto limited = account({.max_running = 1, .max_queued = 1, .tokens_per_minute = 100});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal(*limited, {1, 1, 100}), "") << i;
  EXPECT_EQ(limited->figures().running, 0u);
  EXPECT_EQ(limited->figures().waiting, 0u);
  EXPECT_EQ(limited->figures().prompt_tokens, 0u);
}

TEST(Account, MoreThanAMinutesTokensNeedAFullBucketAndLeaveADebt) {
  const auto limited = account({.tokens_per_minute = 60});
  auto held = limited->take({1, 1, 90}, kStart);
  ASSERT_TRUE(held);
  held->reservation.end(kStart, 45, 45);  // 30 in debt
  EXPECT_EQ(refusal(*limited, {1, 1, 1}, kStart + 30s), "tokens_per_minute");
  EXPECT_EQ(refusal(*limited, {1, 1, 1}, kStart + 31s), "");
  EXPECT_EQ(refusal(*limited, {1, 1, 1000}, kStart + 89s), "tokens_per_minute");
  EXPECT_EQ(refusal(*limited, {1, 1, 1000}, kStart + 90s), "");
}

// Whatever a client does, what it used up to any moment is at most a minute's tokens and what time has brought since.
TEST(Account, OverAnyTimeAClientGetsNoMoreThanItsRate) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto limited = account({.tokens_per_minute = 600});
    std::vector<std::pair<Reservation, std::uint64_t>> open;
    double used = 0;
    std::uint64_t reserved = 0;
    TimePoint now = kStart;
    for (int i = 0; i < 2000; ++i) {
      now += std::chrono::milliseconds(random() % 2000);
      if (random() % 2 == 0) {
        const std::uint64_t tokens = 1 + random() % 600;
        if (auto admitted = limited->take({1, 1, tokens}, now)) {
          open.emplace_back(std::move(admitted->reservation), tokens);
          reserved += tokens;
        }
      } else if (!open.empty()) {
        const std::uint64_t tokens = random() % (open.back().second + 1);
        open.back().first.end(now, tokens, 0);
        reserved -= open.back().second;
        used += static_cast<double>(tokens);
        open.pop_back();
      }
      const double seconds = std::chrono::duration<double>(now - kStart).count();
      ASSERT_LE(used + static_cast<double>(reserved), 600.0 + seconds * 10.0 + 1e-6);
    }
  }
}

TEST(Account, ARefusalSaysItsLimitAndWhenToTryAgain) {
  const auto limited = account({.max_running = 2, .tokens_per_minute = 600});
  auto held = limited->take({2, 2, 300}, kStart);
  ASSERT_TRUE(held);
  auto refused = limited->take({1, 1, 1}, kStart);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kQueueFull);
  EXPECT_EQ(refused.error().message, "this key has 2 sequences under way and its max_running is 2; try again later");
  EXPECT_STREQ(refused.error().reason, "rate_limit_exceeded");
  EXPECT_EQ(refused.error().retry_after_s, 1);

  held->reservation.end(kStart, 300, 0);
  refused = limited->take({1, 1, 500}, kStart);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().retry_after_s, 20) << "200 tokens at 10 a second";
  EXPECT_THAT(refused.error().message, HasSubstr("300 tokens left"));
  EXPECT_EQ(refusal(*limited, {1, 1, 500}, kStart + 20s), "") << "it was true";
  const auto figures = limited->figures();
  EXPECT_EQ(figures.refused[Account::kMaxRunning], 1u);
  EXPECT_EQ(figures.refused[Account::kTokensPerMinute], 1u);
  EXPECT_EQ(figures.refused[Account::kMaxQueued], 0u);
  EXPECT_EQ(figures.requests, 2u);
}

TEST(Account, LongStaysMakeForLongWaits) {
  const auto limited = account({.max_running = 1});
  const auto wait = [&] {
    const auto held = limited->take({1, 1, 0}, kStart);
    return limited->take({1, 1, 0}, kStart).error().retry_after_s;
  };
  const int before = wait();
  for (int i = 0; i < 50; ++i) {
    auto held = limited->take({1, 1, 0}, kStart);
    held->reservation.end(kStart + 20s, 1, 1);
  }
  EXPECT_EQ(before, 1);
  EXPECT_EQ(wait(), 20);
}

TEST(Account, NewLimitsCountFromThenOnAndTouchNothingUnderWay) {
  const auto limited = account({.max_running = 4});
  auto held = limited->take({4, 4, 50}, kStart);
  ASSERT_TRUE(held);
  limited->set_limits({.max_running = 2, .tokens_per_minute = 100});
  EXPECT_EQ(refusal(*limited, {1, 1, 1}), "max_running");
  held->reservation.end(kStart, 25, 25);
  EXPECT_EQ(refusal(*limited, {2, 2, 100}), "") << "the bucket is new and full";
  limited->set_limits({});
  EXPECT_EQ(refusal(*limited, {100, 100, 1000}), "");
}

TEST(Account, PlacesGoOnOtherThreadsWhileRequestsCome) {
  const auto limited = account({.max_running = 8, .max_queued = 4});
  std::atomic<int> most{0};
  const auto client = [&] {
    for (int i = 0; i < 2000; ++i) {
      auto admitted = limited->take({1, 1, 0}, kStart);
      if (!admitted) continue;
      const auto figures = limited->figures();
      int seen = most.load();
      while (static_cast<int>(figures.waiting) > seen && !most.compare_exchange_weak(seen, figures.waiting)) {
      }
      admitted->slots.clear();
      admitted->reservation.end(kStart, 1, 1);
    }
  };
  std::thread one(client), two(client), three(client);
  one.join();
  two.join();
  three.join();
  EXPECT_LE(most.load(), 4);
  EXPECT_EQ(limited->figures().running, 0u);
  EXPECT_EQ(limited->figures().waiting, 0u);
}

}  // namespace
}  // namespace quire::bridge
