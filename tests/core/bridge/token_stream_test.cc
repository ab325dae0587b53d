#include "core/bridge/token_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"
#include "tests/core/bridge/stress.h"

namespace quire::bridge {
namespace {

using flow::Finish;
using flow::TokenEvent;

class TokenStreamTest : public testing::Test {
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

TEST_F(TokenStreamTest, TakesATokenWhileItAndAnEndFit) {
  const auto capacity = static_cast<int>(TokenStream::kCapacity);
  fill(capacity - 2);
  EXPECT_TRUE(stream_->can_take_token());
  fill(1);
  EXPECT_FALSE(stream_->can_take_token());
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

TEST_F(TokenStreamTest, RingsWhenAParkedStreamHasRoomAgain) {
  fill(static_cast<int>(TokenStream::kCapacity) - 1);
  ASSERT_FALSE(stream_->can_take_token());
  stream_->pop();
  EXPECT_TRUE(rings(engine_));
  EXPECT_TRUE(stream_->can_take_token());
}

TEST_F(TokenStreamTest, DoesNotRingForAStreamThatIsNotParked) {
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

// A slow client: the ring runs full again and again. Each side sleeps until the other wakes it, so one lost wake-up stops all.
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

  bool parked_too_long = false;
  std::jthread producer([&, stream] {
    for (int token = 0; token < kTokens;) {
      while (!stream->can_take_token()) {
        hub->flush();
        if (!rings(engine)) {
          parked_too_long = true;
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
  EXPECT_FALSE(parked_too_long);
  EXPECT_EQ(received, kTokens);
}

// The client makes room at the very instant in which the engine finds none: it rings, or the engine sees the room.
TEST(TokenStreamStress, RoomMadeWhileParkingIsNeverMissed) {
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
