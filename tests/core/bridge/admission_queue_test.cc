#include "core/bridge/admission_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "core/bridge/stream_hub.h"
#include "tests/core/bridge/bells.h"

namespace quire::bridge {
namespace {

using ::testing::HasSubstr;

std::vector<Submission> request(std::uint64_t id, std::size_t sequences, std::size_t tokens_each) {
  std::vector<Submission> submissions(sequences);
  for (Submission& submission : submissions) {
    submission.request.arrival = TimePoint(Duration(static_cast<std::int64_t>(id)));  // a mark to know it by
    submission.request.prompt.assign(tokens_each, 1);
  }
  return submissions;
}

class AdmissionQueueTest : public ::testing::Test {
 protected:
  Result<Done> admit(std::size_t sequences, std::size_t tokens_each) {
    auto submissions = request(next_id_++, sequences, tokens_each);
    return queue_.admit(submissions);
  }
  void expect_waiting(std::uint32_t sequences, std::uint32_t tokens) {
    EXPECT_EQ(queue_.waiting_sequences(), sequences);
    EXPECT_EQ(queue_.waiting_tokens(), tokens);
  }

  Doorbell engine_;
  AdmissionQueue queue_{{.max_sequences = 5, .max_tokens = 100}, engine_};
  std::uint64_t next_id_ = 0;
};

TEST_F(AdmissionQueueTest, TakesSequencesUpToItsLimitAndNotOneMore) {
  for (std::uint32_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(admit(1, 1)) << i;
    expect_waiting(i, i);
  }
  const auto refused = admit(1, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kQueueFull);
  EXPECT_THAT(refused.error().message, HasSubstr("5 of 5 sequences"));
  expect_waiting(5, 5);
}

TEST_F(AdmissionQueueTest, AClientsPlaceIsHeldAsLongAsTheCredit) {
  const auto account = std::make_shared<Account>("alice", AccountLimits{});
  auto taken = account->take({2, 2, 0}, TimePoint{});
  auto submissions = request(0, 2, 1);
  for (std::size_t i = 0; i < 2; ++i) submissions[i].slot = std::move(taken->slots[i]);
  ASSERT_TRUE(queue_.admit(submissions));
  submissions.clear();
  EXPECT_EQ(account->figures().waiting, 2u);
  std::optional<Submission> first = queue_.pop();
  EXPECT_EQ(account->figures().waiting, 2u) << "the engine has it, and it has not run";
  first->credit.give_back();
  EXPECT_EQ(account->figures().waiting, 1u);
  queue_.pop();
  EXPECT_EQ(account->figures().waiting, 0u);
  EXPECT_EQ(account->figures().running, 2u);
}

TEST_F(AdmissionQueueTest, WhatIsNotAdmittedGivesItsPlacesBack) {
  const auto account = std::make_shared<Account>("alice", AccountLimits{});
  auto taken = account->take({1, 1, 0}, TimePoint{});
  ASSERT_TRUE(admit(5, 1));
  auto submissions = request(9, 1, 1);
  submissions[0].slot = std::move(taken->slots[0]);
  EXPECT_FALSE(queue_.admit(submissions));
  submissions.clear();
  EXPECT_EQ(account->figures().waiting, 0u);
}

TEST_F(AdmissionQueueTest, TakesTokensUpToItsLimitAndNotOneMore) {
  ASSERT_TRUE(admit(1, 60));
  EXPECT_EQ(admit(1, 41).error().code, Code::kQueueFull);
  expect_waiting(1, 60);
  ASSERT_TRUE(admit(1, 39));
  ASSERT_TRUE(admit(1, 1));
  expect_waiting(3, 100);
  EXPECT_EQ(admit(1, 1).error().code, Code::kQueueFull);
}

TEST_F(AdmissionQueueTest, TakesAllSequencesOfARequestOrNone) {
  ASSERT_TRUE(admit(3, 1));
  auto submissions = request(9, 3, 1);
  const auto refused = queue_.admit(submissions);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kQueueFull);
  expect_waiting(3, 3);
  EXPECT_EQ(submissions.size(), 3u);
  for (const Submission& submission : submissions) EXPECT_EQ(submission.request.prompt.size(), 1u) << "untouched";
  EXPECT_TRUE(admit(2, 1));
}

TEST_F(AdmissionQueueTest, ARequestThatCanNeverFitIsTheCallersFault) {
  for (const auto& [sequences, tokens] : {std::pair<std::size_t, std::size_t>{6, 1}, {1, 101}, {2, 51}}) {
    const auto refused = admit(sequences, tokens);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_EQ(refused.error().param, "prompt");
    EXPECT_THAT(refused.error().message, HasSubstr("5 sequences and 100 tokens"));
  }
  EXPECT_TRUE(admit(5, 20));
}

TEST_F(AdmissionQueueTest, GivesSequencesOutInTheOrderAdmitted) {
  ASSERT_TRUE(admit(2, 1));
  ASSERT_TRUE(admit(1, 2));
  EXPECT_EQ(queue_.pop()->request.arrival.time_since_epoch().count(), 0);
  EXPECT_EQ(queue_.pop()->request.arrival.time_since_epoch().count(), 0);
  const auto last = queue_.pop();
  EXPECT_EQ(last->request.arrival.time_since_epoch().count(), 1);
  EXPECT_EQ(last->request.prompt.size(), 2u);
  EXPECT_FALSE(queue_.pop());
}

TEST_F(AdmissionQueueTest, ASequenceIsWaitingUntilItsCreditIsGivenBack) {
  ASSERT_TRUE(admit(1, 30));
  auto submission = queue_.pop();
  expect_waiting(1, 30);
  submission->credit.give_back();
  expect_waiting(0, 0);
  submission->credit.give_back();
  submission.reset();
  expect_waiting(0, 0);
}

TEST_F(AdmissionQueueTest, ADroppedSubmissionGivesItsCreditBack) {
  ASSERT_TRUE(admit(2, 30));
  queue_.pop();
  expect_waiting(1, 30);
  queue_.pop();
  expect_waiting(0, 0);
}

TEST_F(AdmissionQueueTest, AMovedCreditIsGivenBackOnceAndAnOverwrittenOneAtOnce) {
  ASSERT_TRUE(admit(1, 10));
  ASSERT_TRUE(admit(1, 20));
  auto first = queue_.pop();
  auto second = queue_.pop();
  Credit moved(std::move(first->credit));
  first.reset();
  expect_waiting(2, 30);

  moved = std::move(second->credit);
  expect_waiting(1, 20);
  Credit& same = moved;
  moved = std::move(same);
  expect_waiting(1, 20);
  second.reset();
  expect_waiting(1, 20);
  moved = Credit();
  expect_waiting(0, 0);
}

TEST_F(AdmissionQueueTest, WhatIsLeftInsideGoesWithTheQueueAndFreesItsStreams) {
  const auto hub = std::make_shared<StreamHub>(
      1, [] {}, engine_);
  {
    AdmissionQueue queue({.max_sequences = 1, .max_tokens = 10}, engine_);
    auto submissions = request(1, 1, 10);
    submissions[0].stream = hub->open([] {});
    ASSERT_TRUE(queue.admit(submissions));
    submissions.clear();
    EXPECT_EQ(hub->num_open(), 1u);
  }
  EXPECT_EQ(hub->num_open(), 0u);
}

TEST_F(AdmissionQueueTest, RingsTheEngine) {
  ASSERT_TRUE(admit(1, 1));
  EXPECT_TRUE(rings(engine_));
  EXPECT_FALSE(admit(6, 1));
  EXPECT_TRUE(silent(engine_)) << "a refusal wakes nobody";
}

TEST_F(AdmissionQueueTest, TakesNothingOnceClosedAndKeepsWhatIsInside) {
  ASSERT_TRUE(admit(4, 1));
  queue_.close();
  const auto refused = admit(1, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_GE(refused.error().retry_after_s, 1);
  expect_waiting(4, 4);
  EXPECT_EQ(admit(2, 1).error().code, Code::kUnavailable) << "closed comes before full";
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue_.pop());
  expect_waiting(0, 0);
}

TEST_F(AdmissionQueueTest, RetryAfterFollowsThePaceBetweenOneSecondAndAMinute) {
  using namespace std::chrono_literals;
  ASSERT_TRUE(admit(5, 1));
  EXPECT_EQ(queue_.retry_after_s(), 1) << "nothing is known";
  const auto end_after = [&](Duration residence) {
    for (int i = 0; i < 200; ++i) queue_.load_estimate().note_end(residence, 4);
  };
  end_after(8s);  // one of four ends every two seconds; half the line and one more: 3.5 ends
  EXPECT_EQ(queue_.retry_after_s(), 7);
  end_after(1h);
  EXPECT_EQ(queue_.retry_after_s(), 60);
  EXPECT_EQ(admit(1, 1).error().retry_after_s, 60);
  end_after(1ms);
  EXPECT_EQ(queue_.retry_after_s(), 1);
}

// Credits under contention: never past a limit, nothing lost, and all back at the end.
TEST(AdmissionQueueStress, HoldsItsLimitsAndLosesNothingWithManyProducers) {
  constexpr int kProducers = 3;
  constexpr std::uint32_t kRequests = 30'000 / kStressDivisor;
  constexpr AdmissionQueue::Limits kLimits{.max_sequences = 8, .max_tokens = 60};
  Doorbell engine;
  AdmissionQueue queue(kLimits, engine);
  std::atomic<std::uint64_t> admitted{0};
  std::atomic<int> done{0};
  std::vector<std::jthread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      std::mt19937 random(static_cast<unsigned>(p));
      for (std::uint32_t i = 0; i < kRequests; ++i) {
        const std::size_t sequences = 1 + random() % 3;
        auto submissions = request(static_cast<std::uint64_t>(p) << 32 | i, sequences, 1 + random() % 20);
        const TimePoint lost = in(kLost);
        for (;;) {
          const auto answer = queue.admit(submissions);
          if (answer) break;
          if (answer.error().code != Code::kQueueFull || SteadyClock().now() > lost) return;
          std::this_thread::yield();
        }
        admitted.fetch_add(sequences, std::memory_order_relaxed);
      }
      done.fetch_add(1);
      engine.ring();
    });
  }

  std::uint64_t popped = 0;
  std::uint64_t last_id[kProducers] = {};
  std::vector<Submission> running;
  std::uint64_t held_tokens = 0;
  for (;;) {
    ASSERT_LE(queue.waiting_sequences(), kLimits.max_sequences);
    ASSERT_LE(queue.waiting_tokens(), kLimits.max_tokens);
    const bool all_admitted = done.load() == kProducers;
    while (auto submission = queue.pop()) {
      ++popped;
      const std::uint64_t id = static_cast<std::uint64_t>(submission->request.arrival.time_since_epoch().count());
      ASSERT_GE(id & 0xffffffffu, last_id[id >> 32]) << "a producer's requests keep their order";
      last_id[id >> 32] = id & 0xffffffffu;
      held_tokens += submission->request.prompt.size();
      running.push_back(std::move(*submission));
      ASSERT_LE(running.size(), kLimits.max_sequences);
      ASSERT_LE(held_tokens, kLimits.max_tokens);
      if (popped % 3 == 0) {  // some start at once, some later: credits come back out of order
        held_tokens -= running.front().request.prompt.size();
        running.erase(running.begin());
      }
    }
    running.clear();
    held_tokens = 0;
    if (all_admitted) break;
    ASSERT_TRUE(rings(engine));
  }
  EXPECT_EQ(popped, admitted.load());
  EXPECT_EQ(queue.waiting_sequences(), 0u);
  EXPECT_EQ(queue.waiting_tokens(), 0u);
}

// Once closed and nobody waits, nothing more is ever popped: the engine may end.
TEST(AdmissionQueueStress, ClosedAndEmptyIsForGood) {
  for (int round = 0; round < 100 / kStressDivisor; ++round) {
    Doorbell engine;
    AdmissionQueue queue({.max_sequences = 4, .max_tokens = 100}, engine);
    std::atomic<int> admitted{0};
    std::vector<std::jthread> producers;
    for (int p = 0; p < 2; ++p) {
      producers.emplace_back([&] {
        for (;;) {
          auto submissions = request(1, 2, 1);
          const auto answer = queue.admit(submissions);
          if (answer) {
            admitted.fetch_add(2);
          } else if (answer.error().code == Code::kUnavailable) {
            return;
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    int popped = 0;
    const auto take_all = [&] {
      while (queue.pop()) ++popped;
    };
    while (popped < 20) take_all();
    queue.close();
    while (queue.waiting_sequences() != 0) take_all();
    const int at_rest = popped;
    producers.clear();
    take_all();
    ASSERT_EQ(popped, at_rest) << "round " << round;
    ASSERT_EQ(popped, admitted.load()) << "round " << round;
    ASSERT_EQ(queue.waiting_sequences(), 0u);
  }
}

}  // namespace
}  // namespace quire::bridge
