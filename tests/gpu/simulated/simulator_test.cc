// Fibers that stand for the threads of a GPU: they meet at barriers, see each other's words, and take turns in an order
// that is drawn.
#include "gpu/simulated/simulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <set>
#include <vector>

#include "gpu/device/simt.h"

namespace quire::gpu {
namespace {

struct Out {
  float* values = nullptr;
};

template <typename Kernel>
std::vector<float> run(std::uint64_t seed, unsigned threads, unsigned grid_x = 1, unsigned grid_y = 1) {
  std::vector<float> values(std::size_t{threads} * grid_x * grid_y);
  const Out out{values.data()};
  sim::Simulator simulator(seed);
  simulator.run(
      {.thread = [](const void* args, std::byte* shared) { Kernel::run(*static_cast<const Out*>(args), shared); },
       .args = &out,
       .grid_x = grid_x,
       .grid_y = grid_y,
       .threads = threads,
       .shared_bytes = threads * sizeof(float)});
  return values;
}

// Each block adds up its threads' numbers, half of them with the other half, until one is left.
struct SumOfBlock {
  static void run(const Out& out, std::byte* shared) {
    auto* sums = reinterpret_cast<float*>(shared);
    sums[thread()] = static_cast<float>(thread() + block().x);
    sync_block();
    for (unsigned half = 32; half > 0; half /= 2) {
      if (thread() < half) sums[thread()] += sums[thread() + half];
      sync_block();
    }
    out.values[(block().y * 3 + block().x) * 64 + thread()] = sums[0];
  }
};

struct SumWithoutABarrier {
  static void run(const Out& out, std::byte* shared) {
    auto* sums = reinterpret_cast<float*>(shared);
    sums[thread()] = 1.0f;
    out.values[thread()] = sums[(thread() + 1) % 64];
  }
};

struct NumberOfOther {
  static void run(const Out& out, std::byte*) {
    float value = static_cast<float>(thread());
    for (const unsigned mask : {1u, 16u, 5u}) value = shuffle_xor(value, mask);
    out.values[thread()] = value;
  }
};

struct NumberOfNeighbour {
  static void run(const Out& out, std::byte* shared) {
    auto* numbers = reinterpret_cast<float*>(shared);
    numbers[thread()] = static_cast<float>(thread());
    sync_warp();
    out.values[thread()] = numbers[thread() ^ 9];
  }
};

struct AnyOfBlock {
  static void run(const Out& out, std::byte*) {
    float found = 0.0f;
    for (unsigned round = 0; round < 70; ++round) {
      if (any_of_block(thread() == round)) found += 1.0f;  // 64 of them are there
    }
    out.values[thread()] = found;
  }
};

struct OneLeavesEarly {
  static void run(const Out&, std::byte*) {
    if (thread() != 7) sync_block();
  }
};

// Two blocks that take turns by a word that both see: each waits for what the other wrote.
struct DependentLaunch {
  struct Args {
    unsigned* word = nullptr;
    unsigned begins = 0;
  };
  static void run(const Args& a, std::byte*) {
    for (unsigned turn = a.begins; thread() == 0 && turn < 100; turn += 2) {
      while (*a.word != turn) sim::pause();
      *a.word = turn + 1;
    }
    sync_block();
  }
};

void set_dependent(unsigned* word, std::initializer_list<unsigned> begins, std::uint64_t seed) {
  std::vector<DependentLaunch::Args> args;
  for (const unsigned first : begins) args.push_back({word, first});
  std::vector<sim::Launch> launches;
  for (const DependentLaunch::Args& one : args) {
    launches.push_back({.thread =
                            [](const void* a, std::byte* shared) {
                              DependentLaunch::run(*static_cast<const DependentLaunch::Args*>(a), shared);
                            },
                        .args = &one,
                        .threads = 64});
  }
  sim::Simulator(seed).run_together(launches);
}

TEST(Simulator, RunsBlocksOfTwoLaunchesSideBySide) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    unsigned word = 0;
    set_dependent(&word, {1, 0}, seed);
    EXPECT_EQ(word, 100u);
  }
}

TEST(SimulatorDeathTest, FindsThatAllLookForWhatNobodyWrites) {
  unsigned word = 0;
  EXPECT_DEATH(set_dependent(&word, {0}, 1), "num_pauses_");
}

TEST(Simulator, MeetsAtBarriersInEveryBlockWhateverTheOrderOfThreads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<float> values = run<SumOfBlock>(seed, 64, 3, 2);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], 64.0f * 63.0f / 2 + 64.0f * (i / 64 % 3));
  }
}

TEST(Simulator, ShowsAMissingBarrierAsNumbersThatDependOnTheSeedOrAreNone) {
  std::set<std::vector<bool>> missing;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::vector<bool> is_nan;
    for (const float value : run<SumWithoutABarrier>(seed, 64)) is_nan.push_back(std::isnan(value));
    EXPECT_NE(std::count(is_nan.begin(), is_nan.end(), true), 0);
    missing.insert(is_nan);
  }
  EXPECT_GT(missing.size(), 1u);
}

TEST(Simulator, ShufflesWithinWarps) {
  for (const unsigned threads : {32u, 96u, 1024u}) {
    const std::vector<float> values = run<NumberOfOther>(threads, threads);
    for (unsigned i = 0; i < threads; ++i) ASSERT_EQ(values[i], static_cast<float>(i ^ 1u ^ 16u ^ 5u));
  }
}

TEST(Simulator, MeetsWarpByWarpWhateverTheOrderOfThreads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<float> values = run<NumberOfNeighbour>(seed, 64);
    for (unsigned t = 0; t < 64; ++t) ASSERT_EQ(values[t], static_cast<float>(t ^ 9)) << seed;
  }
}

TEST(Simulator, AsksTheWholeBlockAgainAndAgain) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const float found : run<AnyOfBlock>(seed, 64)) ASSERT_EQ(found, 64.0f);
  }
}

TEST(SimulatorDeathTest, FindsABarrierThatNotAllComeTo) { EXPECT_DEATH(run<OneLeavesEarly>(1, 64), "num_ended"); }

}  // namespace
}  // namespace quire::gpu
