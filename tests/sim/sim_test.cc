// A hundred thousand small worlds, each checked after every turn (invariants.h) and at its end (world.cc).
#include <gtest/gtest.h>

#include <chrono>

#include "tests/sim/command_line.h"
#include "tests/sim/run_apart.h"

namespace quire::sim {
namespace {

TEST(Sim, EverySeedKeepsTheContractAndEveryStreamGetsItsAnswer) {
  Counts counts;
  const auto began = std::chrono::steady_clock::now();
  const auto failure = run_seeds(1, QUIRE_SIM_SCHEDULES, num_processes(), counts);
  if (failure) FAIL() << "seed " << failure->seed << ": " << failure->message << report(shrink(*failure));
  print(counts, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  EXPECT_EQ(counts.schedules, std::uint64_t{QUIRE_SIM_SCHEDULES});
  // A world in which nothing happens proves nothing.
  EXPECT_GT(counts.cached_tokens, 10 * counts.schedules);
  EXPECT_GT(counts.windowed_tokens, counts.schedules);
  EXPECT_GT(counts.grouped, counts.schedules / 10);
  EXPECT_GT(counts.preemptions, counts.schedules / 10);
  EXPECT_GT(counts.copies, counts.schedules / 10);
  EXPECT_GT(counts.swaps_in, counts.schedules / 100);
  EXPECT_GT(counts.poisons, counts.schedules);
  EXPECT_GT(counts.shared_blocks, counts.schedules);
  EXPECT_GT(counts.dropped_blocks, counts.schedules / 10);
  EXPECT_GT(counts.paused, counts.schedules / 10);
  EXPECT_GT(counts.cancelled, counts.schedules / 10);
  EXPECT_GT(counts.failed, counts.schedules / 100);
  EXPECT_GT(counts.beams, counts.schedules / 10);
  EXPECT_GT(counts.pooled, counts.schedules / 10);
  EXPECT_GT(counts.overtakes, counts.schedules / 10);
  EXPECT_GT(counts.broken, counts.schedules / 100);
  EXPECT_GT(counts.pinned, counts.schedules / 100);
  EXPECT_GT(counts.loaded_blocks, counts.schedules / 20000);
  EXPECT_GT(counts.ahead, counts.schedules);
  EXPECT_GT(counts.fed, counts.schedules);
}

// Each line was the smallest schedule that failed because of a bug in core/, which is mended.
constexpr const char* kMended[] = {
    // More rows planned than there were blocks for: those of a victim, which came free while room was made.
    "blocks=34 p=16 rows=129 victim=1 | len=490 gen=26 n=2 kv=1",
    // Two sent themselves back for each other for ever, a span of their prompts each.
    "blocks=34 p=16 rows=163 policy=2 victim=1 vocab=3 | len=495 gen=26 n=2 kv=1 | len=464 gen=55 deadline=0 "
    "kv=1",
    // Entries loaded behind one that was there already outlived it.
    "blocks=25 p=1 max_len=13 pin=12 save=2 load=17 | len=5 gen=2 | at=12 len=2 gen=5 tail=1 n=3",
    // Back from the host, a sequence began again at its last whole group, and the window had left blocks it saw from
    // there.
    "p=16 swap=1 window=2 groups=1 storm=1 | len=16 gen=3",
    // A tenant whose small requests came one by one took turn after turn: the other never got its quantum.
    "blocks=12 seqs=1 rows=60 policy=3 | len=1 gen=3 | at=1 len=40 gen=2 tenant=1 tail=3 | "
    "at=1 len=7 gen=3 tail=1 | at=4 len=7 gen=3 tail=2 | at=7 len=7 gen=3 tail=3 | at=10 len=7 gen=3 "
    "tail=4 | at=13 len=7 gen=3 tail=5 | at=16 len=7 gen=3 tail=6 | at=19 len=7 gen=3 tail=7 | at=22 "
    "len=7 gen=3 tail=8 | at=25 len=7 gen=3 tail=9 | at=28 len=7 gen=3 tail=10 | at=31 len=7 gen=3 "
    "tail=11 | at=34 len=7 gen=3 tail=12 | at=37 len=7 gen=3 tail=13 | at=40 len=7 gen=3 tail=14 | at=43 "
    "len=7 gen=3 tail=15 | at=46 len=7 gen=3 tail=16",
    // A sequence that was cancelled with its last row in flight was gone when the drafter's time was recorded (found by
    // the address sanitizer).
    "draft=10 depth=2 | gen=6 cancel=9 | gen=5",
    // A partial entry lost its block of the full group to a longer entry, and kept its window block, which no hit
    // reached.
    "blocks=14 max_len=26 rows=21 layers=2 window2=2 |  | len=25",
    // A pinned prefix held the windows of all its restore points.
    "blocks=54 p=1 rows=2 window=8 restore=9 pin=30",
    // The blocks of an entry were written one by one and read as one: their hash was another.
    "max_len=2 layers=2 save=1 load=2 |  | at=2",
};

TEST(Sim, WhatOnceFailedDoesNot) {
  for (const char* text : kMended) EXPECT_EQ(run_apart(valid(parse(text))), std::nullopt) << text;
}

// In this process, so that a sanitizer sees what is left when a world ends.
TEST(Sim, WhatHappensIsAFunctionOfTheText) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Scenario scenario = random_scenario(seed);
    ASSERT_EQ(parse(to_text(scenario)), scenario) << to_text(scenario);
    ASSERT_EQ(valid(scenario), scenario) << to_text(scenario);
    Counts counts;
    Counts again;
    run(scenario, counts);
    run(parse(to_text(scenario)), again);
    ASSERT_EQ(counts.rows, again.rows) << to_text(scenario);
    ASSERT_EQ(counts.iterations, again.iterations) << to_text(scenario);
    ASSERT_EQ(counts.copies, again.copies) << to_text(scenario);
  }
}

}  // namespace
}  // namespace quire::sim
