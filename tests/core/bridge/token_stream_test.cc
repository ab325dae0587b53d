#include "core/bridge/token_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"
#include "tests/core/bridge/bells.h"

namespace quire::bridge {
namespace {

using flow::Finish;
using flow::TokenEvent;

class TokenStreamTest : public ::testing::Test {
 protected:
  void fill(int num_tokens) {
    for (int i = 0; i < num_tokens; ++i) stream_->push({i, Finish::kNone});
  }

  Doorbell engine_;
  std::shared_ptr<StreamHub> hub_ = std::make_shared<StreamHub>(
      4, [] {}, engine_);
  std::shared_ptr<TokenStream> stream_ = hub_->open([] {});
};

using TokenStreamDeathTest = TokenStreamTest;

TEST_F(TokenStreamTest, GivesTokensInTheOrderPushedOverManyLaps) {
  int pushed = 0;
  int popped = 0;
  for (int lap = 0; lap < 500; ++lap) {
    for (int i = 0; i <= lap % 63 && stream_->can_take_token(); ++i) stream_->push({pushed++, Finish::kNone});
    while (const auto event = stream_->pop()) {
      ASSERT_EQ(event->token, popped++);
      ASSERT_EQ(event->finish, Finish::kNone);
    }
  }
  EXPECT_EQ(popped, pushed);
}

TEST_F(TokenStreamTest, KnowsHowManyStepsWereDoneSinceItWasFirstCancelled) {
  engine_.note_step();
  stream_->cancel();
  EXPECT_EQ(stream_->steps_since_cancelled(), 0u);
  engine_.note_step();
  stream_->cancel();
  engine_.note_step();
  EXPECT_EQ(stream_->steps_since_cancelled(), 2u);
}

TEST_F(TokenStreamTest, TakesATokenWhileItAndAnEndFit) {
  const auto capacity = static_cast<int>(TokenStream::kCapacity);
  fill(capacity - 2);
  EXPECT_TRUE(stream_->can_take_token());
  fill(1);
  EXPECT_FALSE(stream_->can_take_token());
}

TEST_F(TokenStreamTest, TakesSoManyTokensWhileTheyAndAnEndFit) {
  fill(50);
  const std::uint32_t room = TokenStream::kCapacity - 51;
  EXPECT_TRUE(stream_->can_take(room - 1));
  EXPECT_TRUE(stream_->can_take(room));
  EXPECT_FALSE(stream_->can_take(room + 1));
  fill(static_cast<int>(room));
  stream_->push({-1, Finish::kCancelled});
}

TEST_F(TokenStreamTest, AnEndFitsWhereNoTokenDoes) {
  const auto capacity = static_cast<int>(TokenStream::kCapacity);
  fill(capacity - 1);
  stream_->push({-1, Finish::kCancelled});
  for (int i = 0; i < capacity - 1; ++i) EXPECT_EQ(stream_->pop()->token, i);
  EXPECT_EQ(stream_->pop()->finish, Finish::kCancelled);
  EXPECT_FALSE(stream_->pop());
}

TEST_F(TokenStreamDeathTest, ATokenInTheEndsPlaceIsOurBug) {
  fill(static_cast<int>(TokenStream::kCapacity) - 1);
  EXPECT_DEATH(stream_->push({1, Finish::kNone}), "CHECK failed");
  EXPECT_DEATH(stream_->push({1, Finish::kLength}), "CHECK failed");
}

TEST_F(TokenStreamDeathTest, AnythingPushedIntoAFullRingIsOurBug) {
  fill(static_cast<int>(TokenStream::kCapacity) - 1);
  stream_->push({-1, Finish::kFailed});
  EXPECT_DEATH(stream_->push({-1, Finish::kFailed}), "CHECK failed");
}

TEST_F(TokenStreamTest, RingsWhenAPausedStreamHasRoomAgain) {
  fill(static_cast<int>(TokenStream::kCapacity) - 1);
  ASSERT_FALSE(stream_->can_take_token());
  stream_->pop();
  EXPECT_TRUE(rings(engine_));
  EXPECT_TRUE(stream_->can_take_token());
}

TEST_F(TokenStreamTest, DoesNotRingForAStreamThatIsNotPaused) {
  fill(static_cast<int>(TokenStream::kCapacity) - 2);
  ASSERT_TRUE(stream_->can_take_token());
  stream_->pop();
  EXPECT_TRUE(silent(engine_));
}

TEST_F(TokenStreamTest, ACancelIsSeenAndRings) {
  EXPECT_FALSE(stream_->cancelled());
  stream_->cancel();
  EXPECT_TRUE(stream_->cancelled());
  EXPECT_TRUE(rings(engine_));
}

// A slow client: the ring runs full again and again. Each side sleeps until the other wakes it, so one lost wake-up
// stops all.
TEST(TokenStreamStress, LosesNoTokenAndNoWakeUpWithASlowConsumer) {
  constexpr int kTokens = 400'000 / kStressDivisor;
  Doorbell engine;
  Doorbell io;
  const auto hub = std::make_shared<StreamHub>(
      1, [&] { io.ring(); }, engine);
  int received = 0;
  bool ended = false;
  std::shared_ptr<TokenStream> stream;
  stream = hub->open([&] {
    while (const auto event = stream->pop()) {
      if (flow::has_token(event->finish)) {
        EXPECT_EQ(event->token, received++);
      } else {
        ended = true;
      }
    }
  });

  bool paused_too_long = false;
  std::jthread producer([&, stream] {
    for (int token = 0; token < kTokens;) {
      while (!stream->can_take_token()) {
        hub->flush();
        if (!rings(engine)) {
          paused_too_long = true;
          return;
        }
      }
      stream->push({token++, Finish::kNone});
      if (token % 7 == 0) hub->flush();
    }
    stream->push({-1, Finish::kCancelled});
    hub->flush();
  });
  while (!ended) {
    ASSERT_TRUE(rings(io)) << "after " << received << " tokens";
    hub->drain();
  }
  producer.join();
  EXPECT_FALSE(paused_too_long);
  EXPECT_EQ(received, kTokens);
}

// ---- candidates

std::vector<flow::Candidate> candidates(int token, std::size_t count) {
  std::vector<flow::Candidate> list(count);
  for (std::size_t i = 0; i < count; ++i) list[i] = {token + static_cast<int>(i), -static_cast<float>(i)};
  return list;
}

bool same(std::span<const flow::Candidate> a, std::span<const flow::Candidate> b) {
  return std::ranges::equal(a, b, [](const flow::Candidate& one, const flow::Candidate& other) {
    return one.token == other.token && one.logprob == other.logprob;
  });
}

TEST_F(TokenStreamTest, GivesEachTokenItsOwnCandidatesOverManyLaps) {
  const auto stream = hub_->open([] {}, 5);
  int pushed = 0;
  int popped = 0;
  for (int lap = 0; lap < 300; ++lap) {
    for (int i = 0; i <= lap % 63 && stream->can_take_token(); ++i, ++pushed) {
      stream->push({pushed, Finish::kNone}, candidates(pushed, static_cast<std::size_t>(pushed % 6)));
    }
    while (const auto event = stream->pop()) {
      ASSERT_TRUE(same(stream->top(), candidates(popped, static_cast<std::size_t>(popped % 6)))) << popped;
      ++popped;
    }
  }
  EXPECT_EQ(popped, pushed);
}

TEST_F(TokenStreamTest, KeepsThePoppedCandidatesWhileTheEngineFillsTheirPlaceAgain) {
  const auto stream = hub_->open([] {}, 2);
  stream->push({1, Finish::kNone}, candidates(1, 2));
  stream->pop();
  for (int i = 0; stream->can_take_token(); ++i) stream->push({100 + i, Finish::kNone}, candidates(100 + i, 2));
  EXPECT_TRUE(same(stream->top(), candidates(1, 2)));
}

TEST_F(TokenStreamTest, ReportsNoMoreCandidatesThanItWasOpenedFor) {
  for (const std::uint32_t num_top : {0u, 1u, 2u, 3u, sample::kMaxTop}) {
    const auto stream = hub_->open([] {}, num_top);
    EXPECT_TRUE(stream->top().empty());
    stream->push({1, Finish::kNone}, candidates(1, 2));
    stream->pop();
    EXPECT_EQ(stream->top().size(), std::min(num_top, 2u));
    stream->push({-1, Finish::kCancelled});
    stream->pop();
    EXPECT_TRUE(stream->top().empty()) << "an end has none";
  }
}

TEST_F(TokenStreamTest, HoldsThePromptsScoresWhereItWasOpenedWithThem) {
  EXPECT_EQ(stream_->scores(), nullptr);
  const auto stream = hub_->open([] {}, 0, std::make_unique<PromptScores>(3, 2));
  PromptScores* const scores = stream->scores_to_write();
  ASSERT_EQ(scores->logprobs.size(), 2u);
  ASSERT_EQ(scores->ranks.size(), 2u);
  ASSERT_EQ(scores->top.size(), 4u);
  EXPECT_EQ(scores->top_of(1).data(), &scores->top[2]);
  scores->logprobs[1] = -2.5f;
  stream->push({-1, Finish::kScored});
  EXPECT_EQ(stream->pop()->finish, Finish::kScored);
  EXPECT_EQ(stream->scores()->logprobs[1], -2.5f);
}

TEST_F(TokenStreamTest, HoldsThePromptsEmbeddingWhereItWasOpenedWithOne) {
  EXPECT_EQ(stream_->embedding(), nullptr);
  const auto stream = hub_->open([] {}, 0, nullptr, std::make_unique<PromptEmbedding>(2));
  const float rows[] = {1.0f, -0.5f, 0x1p-30f, 4.0f};
  stream->embedding_to_write()->add(std::span(rows).first(2));
  stream->embedding_to_write()->add(std::span(rows).last(2));
  stream->push({-1, Finish::kScored});
  EXPECT_EQ(stream->pop()->finish, Finish::kScored);
  EXPECT_EQ(stream->embedding()->num_rows, 2u);
  EXPECT_EQ(stream->embedding()->sums, (std::vector<double>{1.0 + 0x1p-30, 3.5}));
}

TEST_F(TokenStreamTest, AnEmbeddingIsFiniteWhereAllItsRowsAre) {
  const float most = std::numeric_limits<float>::max();
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    PromptEmbedding embedding(1);
    for (int row = 0; row < 1000; ++row) embedding.add({&most, 1});
    EXPECT_TRUE(embedding.finite());
    for (const float row : {odd, -odd, 1.0f}) {
      embedding.add({&row, 1});
      EXPECT_FALSE(embedding.finite());
    }
  }
}

TEST_F(TokenStreamDeathTest, IsNotOpenedForMoreCandidatesThanADeviceLists) {
  EXPECT_DEATH(hub_->open([] {}, sample::kMaxTop + 1), "CHECK");
}

// The client makes room at the very instant in which the engine finds none: it rings, or the engine sees the room.
TEST(TokenStreamStress, RoomMadeWhilePausingIsNeverMissed) {
  constexpr int kRounds = 100'000 / kStressDivisor;
  Doorbell engine;
  const auto hub = std::make_shared<StreamHub>(
      1, [] {}, engine);
  const auto stream = hub->open([] {});
  for (int i = 0; i < static_cast<int>(TokenStream::kCapacity) - 1; ++i) stream->push({0, Finish::kNone});
  std::atomic<int> go{0};
  std::atomic<int> popped{0};
  std::jthread io([&] {
    for (int round = 1; round <= kRounds; ++round) {
      spin_until([&] { return go.load() != round - 1; });
      if (go.load() < 0) return;
      stream->pop();
      popped.store(round);
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    go.store(round);
    // A little later each round, so that the two meet in every order.
    for (int i = 0; i < round % 512; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    while (!stream->can_take_token()) {
      if (!rings(engine)) {
        go.store(-1);
        FAIL() << "round " << round;
      }
    }
    spin_until([&] { return popped.load() == round; });
    stream->push({round, Finish::kNone});
  }
}

// Scores and candidates are plain memory: what makes them visible is the pop of the event behind them.
TEST(TokenStreamStress, ScoresAndCandidatesAreThereWithTheEventThatFollowsThem) {
  Doorbell engine;
  const auto hub = std::make_shared<StreamHub>(
      1, [] {}, engine);
  for (int round = 0; round < 2000 / kStressDivisor; ++round) {
    const auto stream = hub->open([] {}, 3, std::make_unique<PromptScores>(20, 0));
    std::jthread engine_side([&stream, round] {
      for (float& logprob : stream->scores_to_write()->logprobs) logprob = static_cast<float>(round);
      for (int i = 0; i < 30; ++i) stream->push({i, Finish::kNone}, candidates(i + round, 3));
    });
    for (int popped = 0; popped < 30;) {
      if (!stream->pop()) continue;
      ASSERT_TRUE(same(stream->top(), candidates(popped + round, 3)));
      for (const float logprob : stream->scores()->logprobs) ASSERT_EQ(logprob, static_cast<float>(round));
      ++popped;
    }
  }
}

TEST(TokenStreamStress, ACancelReachesAnEngineThatSleeps) {
  Doorbell engine;
  const auto hub = std::make_shared<StreamHub>(
      1, [] {}, engine);
  for (int i = 0; i < 2000 / kStressDivisor; ++i) {
    const auto stream = hub->open([] {});
    ASSERT_NE(stream, nullptr);
    std::jthread io([&stream] { stream->cancel(); });
    while (!stream->cancelled()) ASSERT_TRUE(rings(engine)) << i;
  }
}

}  // namespace
}  // namespace quire::bridge
