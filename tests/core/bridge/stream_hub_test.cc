#include "core/bridge/stream_hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "core/bridge/doorbell.h"
#include "core/bridge/token_stream.h"
#include "core/concurrent/mpsc_ring.h"
#include "tests/core/bridge/bells.h"

namespace quire::bridge {
namespace {

using flow::Finish;

class StreamHubTest : public ::testing::Test {
 protected:
  std::shared_ptr<StreamHub> hub(std::uint32_t max_streams) {
    return std::make_shared<StreamHub>(
        max_streams, [this] { ++wakes_; }, engine_);
  }

  Doorbell engine_;
  int wakes_ = 0;
};

TEST_F(StreamHubTest, OpensAsManyStreamsAsItHasSlotsAndNotOneMore) {
  for (const std::uint32_t slots : {1u, 63u, 64u, 65u}) {
    const auto hub = this->hub(slots);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (std::uint32_t i = 0; i < slots; ++i) {
      streams.push_back(hub->open([] {}));
      ASSERT_NE(streams.back(), nullptr) << i;
    }
    EXPECT_EQ(hub->num_open(), slots);
    EXPECT_EQ(hub->open([] {}), nullptr);

    streams.pop_back();
    EXPECT_EQ(hub->num_open(), slots - 1);
    streams.push_back(hub->open([] {}));
    EXPECT_NE(streams.back(), nullptr);
  }
}

TEST_F(StreamHubTest, CallsEachStreamThatHasNewsOnceAndNoOther) {
  const auto hub = this->hub(130);
  std::vector<int> calls(130);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int& count : calls) streams.push_back(hub->open([&count] { ++count; }));
  const std::set<std::size_t> emitted_any = {0, 1, 63, 64, 127, 128, 129};
  for (const std::size_t i : emitted_any) {
    streams[i]->push({1, Finish::kNone});
    streams[i]->push({2, Finish::kNone});
  }

  hub->drain();
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], emitted_any.contains(i)) << i;
  hub->drain();
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], emitted_any.contains(i)) << "no second call " << i;
}

TEST_F(StreamHubTest, WakesOnceAStepAndOnlyWithNews) {
  const auto hub = this->hub(4);
  const auto one = hub->open([] {});
  const auto two = hub->open([] {});
  hub->flush();
  EXPECT_EQ(wakes_, 0);
  one->push({1, Finish::kNone});
  two->push({1, Finish::kNone});
  one->push({2, Finish::kNone});
  hub->flush();
  EXPECT_EQ(wakes_, 1);
  hub->flush();
  EXPECT_EQ(wakes_, 1);
}

TEST_F(StreamHubTest, DoesNotWakeAgainBeforeTheDrainThatIsOnItsWay) {
  const auto hub = this->hub(1);
  const auto stream = hub->open([] {});
  for (int step = 0; step < 3; ++step) {
    stream->push({step, Finish::kNone});
    hub->flush();
  }
  EXPECT_EQ(wakes_, 1);
  hub->drain();
  stream->push({3, Finish::kNone});
  hub->flush();
  EXPECT_EQ(wakes_, 2);
}

TEST_F(StreamHubTest, ReportsSoManyAtOnceAndTheOthersWithAnotherWakeUp) {
  constexpr std::uint32_t kMost = StreamHub::kMaxCalled;
  for (const std::uint32_t count : {kMost - 1, kMost, kMost + 1, 4 * kMost}) {
    wakes_ = 0;
    const auto hub = this->hub(5 * kMost);
    std::vector<int> calls(count);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int& one : calls) streams.push_back(hub->open([&one] { ++one; }));
    for (int round = 1; round <= 2; ++round) {  // the second begins where the first one stopped
      for (const auto& stream : streams) stream->push({1, Finish::kNone});
      hub->flush();
      for (int drained = 0; drained < wakes_; ++drained) hub->drain();
      EXPECT_EQ(calls, std::vector<int>(count, round)) << count;
    }
    EXPECT_EQ(wakes_ > 2, count > kMost) << count;
  }
}

TEST_F(StreamHubTest, ReportsSinceWhenEventsArePendingAndForgetsNoneThatItLeft) {
  const auto hub = this->hub(2 * StreamHub::kMaxCalled);
  std::vector<TimePoint> since;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (std::uint32_t i = 0; i < 2 * StreamHub::kMaxCalled; ++i) {
    streams.push_back(hub->open([&] { since.push_back(hub->pending_since()); }));
  }
  const TimePoint before = SteadyClock().now();
  for (const auto& stream : streams) stream->push({1, Finish::kNone});
  const TimePoint after = SteadyClock().now();
  hub->flush();
  hub->drain();
  streams.back()->push({2, Finish::kNone});  // later news of one that was left
  hub->flush();
  hub->drain();
  ASSERT_EQ(since.size(), streams.size());
  for (const TimePoint one : since) {
    EXPECT_GE(one, before);
    EXPECT_LE(one, after);
  }
  EXPECT_EQ(hub->pending_since(), TimePoint{}) << "nobody is told of any";
  streams.front()->push({3, Finish::kNone});
  hub->flush();
  hub->drain();
  EXPECT_GE(since.back(), after) << "of that news alone";
}

TEST_F(StreamHubTest, AMarkOfAStreamThatIsGoneHarmsNobody) {
  const auto hub = this->hub(1);
  hub->open([] { FAIL() << "called after its end"; })->push({1, Finish::kNone});
  hub->drain();  // the stream is gone, its mark is not

  auto old = hub->open([] { FAIL() << "called after its end"; });
  old->push({1, Finish::kNone});
  old.reset();
  int calls = 0;
  const auto next = hub->open([&] { ++calls; });
  hub->drain();  // may call the slot's new stream, which then finds nothing
  EXPECT_LE(calls, 1);
  EXPECT_FALSE(next->pop());
}

TEST_F(StreamHubTest, ACallMayOpenStreamsAndDropItsOwn) {
  const auto hub = this->hub(2);
  std::shared_ptr<TokenStream> first;
  std::shared_ptr<TokenStream> second;
  first = hub->open([&] {
    second = hub->open([] {});
    first.reset();
  });
  first->push({1, Finish::kNone});
  hub->drain();
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(hub->num_open(), 1u);
}

TEST_F(StreamHubTest, LivesAsLongAsItsStreams) {
  auto hub = this->hub(1);
  const std::weak_ptr<StreamHub> watch = hub;
  auto stream = hub->open([] {});
  hub.reset();
  stream->push({1, Finish::kNone});
  EXPECT_EQ(&stream->hub(), watch.lock().get());
  stream.reset();
  EXPECT_TRUE(watch.expired());
}

// Marks are made while drain() takes them: each is either taken or still there for the next drain().
TEST(StreamHubStress, DrainLosesNoMarkThatIsMadeMeanwhile) {
  constexpr int kStreams = 64;  // one word of the bitmap
  constexpr int kRounds = 3000 / kStressDivisor;
  Doorbell engine;
  const auto hub = std::make_shared<StreamHub>(
      kStreams, [] {}, engine);
  std::atomic<int> received{0};
  std::atomic<bool> over{false};
  std::vector<std::shared_ptr<TokenStream>> streams(kStreams);
  for (auto& stream : streams) {
    stream = hub->open([&] {
      while (stream->pop()) received.fetch_add(1);
    });
  }
  std::jthread io([&] {
    while (!over.load()) hub->drain();
  });
  int pushed = 0;
  for (int round = 0; round < kRounds && pushed == received.load(); ++round) {
    for (const auto& stream : streams) stream->push({++pushed, Finish::kNone});
    hub->flush();
    const TimePoint lost = in(kLost);
    spin_until([&] { return received.load() == pushed || SteadyClock().now() > lost; });
  }
  over.store(true);
  EXPECT_EQ(received.load(), kStreams * kRounds);
}

// Short answers to many clients: streams open on the io thread, end on the engine's, and whoever is last gives the slot
// back.
TEST(StreamHubStress, EverySlotComesBackWhoeverDropsItLast) {
  constexpr std::uint32_t kSlots = 70;
  constexpr int kStreams = 40'000 / kStressDivisor;
  struct Answer {
    std::shared_ptr<TokenStream> stream;
    int received = 0;
  };
  Doorbell engine;
  Doorbell io;
  const auto hub = std::make_shared<StreamHub>(
      kSlots, [&] { io.ring(); }, engine);
  concurrent::MpscRing<std::shared_ptr<TokenStream>> admitted(kSlots);

  std::jthread producer([&] {
    std::vector<std::pair<std::shared_ptr<TokenStream>, int>> running;
    for (int ended = 0; ended < kStreams;) {
      while (auto stream = admitted.try_pop()) running.emplace_back(std::move(*stream), 0);
      for (auto& [stream, pushed] : running) {
        ++pushed;
        stream->push({pushed, pushed == 3 ? Finish::kLength : Finish::kNone});
      }
      hub->flush();
      ended += static_cast<int>(std::erase_if(running, [](const auto& entry) { return entry.second == 3; }));
      if (running.empty() && ended < kStreams && !rings(engine)) return;
    }
  });

  std::map<int, Answer> answers;
  int opened = 0;
  int ended = 0;
  while (ended < kStreams) {
    for (; opened < kStreams; ++opened) {
      const int id = opened;
      auto stream = hub->open([&, id] {
        const auto answer = answers.find(id);
        if (answer == answers.end()) return;  // the mark of its end came after the end was read
        while (const auto event = answer->second.stream->pop()) {
          ASSERT_EQ(event->token, ++answer->second.received);
          if (event->finish == Finish::kLength) {
            ++ended;
            answers.erase(answer);
            return;
          }
        }
      });
      if (stream == nullptr) break;
      answers[id].stream = stream;
      ASSERT_TRUE(admitted.try_push(stream));
    }
    engine.ring();
    if (answers.empty()) {
      std::this_thread::yield();  // the producer is about to let go of the last ones
      continue;
    }
    ASSERT_TRUE(rings(io)) << ended << " ended of " << opened;
    hub->drain();
  }
  producer.join();
  EXPECT_EQ(ended, kStreams);
  EXPECT_EQ(hub->num_open(), 0u);
}

}  // namespace
}  // namespace quire::bridge
