// The team: every chunk once, results seen by the caller, jobs one after another without mixing.
#include "core/cpu/team/parallel_for.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <chrono>
#include <vector>

#include "core/cpu/team/share_out.h"

namespace quire::cpu::parallel_for_test {
namespace {

TEST(Team, RunsEveryChunkOnceAndItsResultsAreSeen) {
  for (const std::uint32_t threads : {1u, 2u, 3u, 8u}) {
    Team team(threads);
    ASSERT_EQ(team.size(), threads);
    std::vector<std::uint32_t> hits(1000);  // plain: the team's own synchronisation must do
    for (std::uint32_t job = 1; job <= 300; ++job) {
      const std::uint32_t chunks = job % 41;
      team.for_chunks(chunks, [&](std::uint32_t chunk, std::uint32_t worker) {
        EXPECT_LT(worker, threads);
        hits[chunk] += job;
      });
      for (std::uint32_t i = 0; i < hits.size(); ++i) {
        ASSERT_EQ(hits[i], i < chunks ? job : 0) << "chunk " << i << " of job " << job;
        hits[i] = 0;
      }
    }
  }
}

TEST(Team, BeginsTheSecondPartOfAJobWhenTheFirstIsDone) {
  for (const std::uint32_t threads : {1u, 2u, 3u, 8u}) {
    Team team(threads);
    for (std::uint32_t job = 0; job <= 300; ++job) {
      const std::uint32_t num_first = job % 17;
      const std::uint32_t num_then = job % 23;
      std::vector<std::uint32_t> made(num_first);  // plain: the team's own synchronisation must do
      std::vector<std::uint32_t> seen(num_then);
      team.for_chunks(
          num_first, [&](std::uint32_t chunk, std::uint32_t) { made[chunk] = chunk + 1; }, num_then,
          [&](std::uint32_t chunk, std::uint32_t) {
            for (const std::uint32_t value : made) seen[chunk] += value;
          });
      for (const std::uint32_t sum : seen) ASSERT_EQ(sum, num_first * (num_first + 1) / 2) << "job " << job;
    }
  }
}

TEST(Team, WakesOthersOnceForAJobOfTwoParts) {
  Team team(2);
  const auto nothing = [](std::uint32_t, std::uint32_t) {};
  team.for_chunks(1, nothing, 1, nothing);
  EXPECT_EQ(team.num_jobs(), 0u);
  team.for_chunks(1, nothing, 9, nothing);
  EXPECT_EQ(team.num_jobs(), 1u);
  team.for_chunks(9, nothing, 9, nothing);
  EXPECT_EQ(team.num_jobs(), 2u);
}

TEST(Team, SharesAJobOut) {
  Team team(2);
  // The first chunk waits until another worker has taken one: that the test ends proves that one did.
  std::atomic<int> started{0};
  team.for_chunks(2, [&](std::uint32_t, std::uint32_t) {
    started.fetch_add(1);
    while (started.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(started.load(), 2);
}

TEST(Team, WakesSleepersForTheNextJob) {
  Team team(3);
  for (int round = 0; round < 5; ++round) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);  // past the spinning
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    std::atomic<int> started{0};
    team.for_chunks(3, [&](std::uint32_t, std::uint32_t) {
      started.fetch_add(1);
      while (started.load() < 3) std::this_thread::yield();
    });
    EXPECT_EQ(started.load(), 3);
  }
}

TEST(Team, RunsASingleChunkOnTheCaller) {
  Team team(4);
  for (int i = 0; i < 100; ++i) {
    team.for_chunks(1, [&](std::uint32_t, std::uint32_t worker) { EXPECT_EQ(worker, 0u); });
  }
}

TEST(Team, ComputesInTheDefaultFloatingPointModeOnEveryThread) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
  set_float_mode();
  Team team(2);
  team.for_chunks(64, [&](std::uint32_t, std::uint32_t) { EXPECT_EQ(_mm_getcsr() & ~0x3fu, 0x1f80u); });
  _mm_setcsr(before);
}

TEST(Team, EndsWithoutEverHavingWorked) {
  for (int i = 0; i < 50; ++i) Team team(4);
}

TEST(ShareOut, CoversEverythingOnceInOrder) {
  for (std::uint32_t count = 0; count < 40; ++count) {
    for (std::uint32_t parts = 1; parts < 12; ++parts) {
      std::uint32_t next = 0;
      for (std::uint32_t i = 0; i < parts; ++i) {
        const Range range = part_of(count, parts, i);
        EXPECT_EQ(range.first, next);
        next = range.last;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(ShareOut, LeavesSmallWorkToTheCaller) {
  EXPECT_EQ(num_chunks((128 << 10) - 1, 4), 1u);
  EXPECT_EQ(num_chunks(128 << 10, 4), 2u);
  EXPECT_EQ(num_chunks(32 << 16, 4), 32u);
  EXPECT_EQ(num_chunks(32 << 20, 4), 32u);
  EXPECT_EQ(num_chunks(33 << 20, 4), 33u);
  EXPECT_EQ(num_chunks(std::size_t{1} << 40, 4), most_chunks(4));
  EXPECT_EQ(num_chunks(std::size_t{1} << 40, 1), 1u);
}

}  // namespace
}  // namespace quire::cpu::parallel_for_test
