#include "core/bridge/timeline.h"

#include <gtest/gtest.h>

#include <thread>

namespace quire::bridge {
namespace {

using namespace std::chrono_literals;
using Trail4 = Trail<std::uint32_t, 4>;

TEST(Trail, KeepsItsFirstEntriesAndCountsThemAll) {
  Trail4 trail;
  for (std::uint32_t n = 1; n <= 5; ++n) {
    trail.add(10 * n);
    EXPECT_EQ(trail.num(), n);
    EXPECT_EQ(trail.kept().size(), std::min(n, 4u));
  }
  EXPECT_EQ(trail.kept().front(), 10u);
  EXPECT_EQ(trail.kept().back(), 40u);
}

TEST(Trail, AReaderSeesWholeEntriesAlone) {
  struct Pair {
    std::uint64_t a = 0, b = 0;
  };
  Trail<Pair, 10000> trail;
  std::thread writer([&trail] {
    for (std::uint64_t i = 1; i <= 10000; ++i) trail.add({i, ~i});
  });
  std::size_t seen = 0;
  while (seen < 10000) {
    const auto kept = trail.kept();
    EXPECT_GE(kept.size(), seen);
    for (; seen < kept.size(); ++seen) {
      ASSERT_EQ(kept[seen].a, seen + 1);
      ASSERT_EQ(kept[seen].b, ~kept[seen].a);
    }
  }
  writer.join();
}

TEST(Timeline, BeginsWithNothing) {
  const Timeline timeline;
  EXPECT_FALSE(timeline.start());
  EXPECT_FALSE(timeline.last_token());
  EXPECT_FALSE(timeline.longest_gap());
  EXPECT_EQ(timeline.end(), Timeline::End::kNone);
  EXPECT_EQ(timeline.chunks().num(), 0u);
}

TEST(Timeline, CountsFromTheRequestsArrival) {
  const TimePoint arrival = TimePoint{} + 1h;
  Timeline timeline;
  timeline.begin(arrival, 7);
  timeline.note_start(arrival + 2ms, 3);
  timeline.note_chunk(arrival + 2ms, arrival + 5ms, 4);
  timeline.note_token(arrival + 5ms);
  timeline.note_preemption(arrival + 6ms, true);
  timeline.note_end(arrival + 7ms, Timeline::End::kStop);
  EXPECT_EQ(timeline.prompt_tokens(), 7u);
  EXPECT_EQ(timeline.start(), 2000u);
  EXPECT_EQ(timeline.cached_tokens(), 3u);
  const Timeline::Chunk chunk = timeline.chunks().kept()[0];
  EXPECT_EQ(chunk.at, 2000u);
  EXPECT_EQ(chunk.took, 3000u);
  EXPECT_EQ(chunk.rows, 4u);
  EXPECT_EQ(timeline.tokens().kept()[0], 5000u);
  EXPECT_EQ(timeline.preemptions().kept()[0].at, 6000u);
  EXPECT_TRUE(timeline.preemptions().kept()[0].swapped);
  EXPECT_EQ(timeline.ended(), 7000u);
  EXPECT_EQ(timeline.end(), Timeline::End::kStop);
}

TEST(Timeline, ATimeTooLateForItsBitsIsTheLastThereIs) {
  Timeline timeline;
  timeline.begin(TimePoint{}, 1);
  timeline.note_token(TimePoint{} + 48h);
  EXPECT_EQ(timeline.last_token(), ~0u - 1);
  timeline.begin(TimePoint{} + 49h, 1);
  timeline.note_end(TimePoint{} + 48h, Timeline::End::kFailed);
  EXPECT_EQ(timeline.ended(), 0u) << "and one before the arrival is the arrival";
}

TEST(Timeline, AddsUpItsDraftsAlsoBeyondThoseItKeeps) {
  Timeline timeline;
  EXPECT_EQ(timeline.num_drafted(), 0u);
  EXPECT_EQ(timeline.num_accepted(), 0u);
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  for (std::uint32_t i = 0; i < 257; ++i) {
    timeline.note_draft(1 + i % 64, i % 3);
    drafted += 1 + i % 64;
    accepted += i % 3;
    EXPECT_EQ(timeline.num_drafted(), drafted);
    EXPECT_EQ(timeline.num_accepted(), accepted);
  }
  EXPECT_EQ(timeline.drafts().num(), 257u);
  ASSERT_EQ(timeline.drafts().kept().size(), 256u);
  EXPECT_EQ(timeline.drafts().kept()[63].drafted, 64u);
  EXPECT_EQ(timeline.drafts().kept()[62].accepted, 2u);
}

TEST(Timeline, KnowsItsLongestGapAndItsLastTokenAlsoBeyondWhatItKeeps) {
  Timeline timeline;
  timeline.begin(TimePoint{}, 1);
  TimePoint now{};
  for (std::uint32_t i = 0; i < 300; ++i) {
    now += i == 280 ? 50ms : i == 3 ? 20ms : 1ms;
    timeline.note_token(now);
    EXPECT_EQ(timeline.longest_gap().has_value(), i > 0);
    if (i == 10) {
      EXPECT_EQ(timeline.longest_gap()->token, 3u);
      EXPECT_EQ(timeline.longest_gap()->length, 20000u);
    }
  }
  EXPECT_EQ(timeline.tokens().num(), 300u);
  EXPECT_EQ(timeline.tokens().kept().size(), 256u);
  EXPECT_EQ(timeline.longest_gap()->token, 280u);
  EXPECT_EQ(timeline.longest_gap()->length, 50000u);
  EXPECT_EQ(timeline.last_token(), std::chrono::duration_cast<std::chrono::microseconds>(now - TimePoint{}).count());
}

}  // namespace
}  // namespace quire::bridge
