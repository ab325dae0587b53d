// Ranks that tell each other numbers: kernels of all of them side by side, in turns that are drawn, say what a serial
// sum says; and such as do not look at epochs are found out.
#include "gpu/parallel/collective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "gpu/kernels/table.h"
#include "gpu/parallel/shards.h"
#include "gpu/runtime/simulated_device.h"
#include "gpu/simulated/simulator.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu {
namespace {

using cpu::test::Random;
using cpu::test::same_bits;

using Rows = std::vector<std::vector<float>>;  // by rank

Rows random_rows(Random& random, std::uint32_t ranks, std::size_t count) {
  Rows rows;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    rows.push_back(random.floats(count));
    for (float& x : rows.back()) x *= std::exp2(static_cast<float>(random.below(40)) - 20.0f);
  }
  return rows;
}

std::vector<float> serial_sum(const Rows& rows) {
  std::vector<float> sum = rows.front();
  for (std::size_t rank = 1; rank < rows.size(); ++rank) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + rows[rank][i];
  }
  return sum;
}

// What ranks have between exchanges, in host memory.
struct Mail {
  std::uint32_t ranks;
  std::uint32_t box;
  std::vector<std::vector<LlWord>> boxes;
  std::vector<std::uint32_t> epochs;
  std::vector<std::uint32_t> arrived;

  Mail(std::uint32_t num_ranks, std::uint32_t box_ll_words)
      : ranks(num_ranks),
        box(box_ll_words),
        boxes(num_ranks, std::vector<LlWord>(num_ll_words(num_ranks, box_ll_words))),
        epochs(num_ranks, kFirstEpoch),
        arrived(num_ranks, 0) {}

  // Each rank's sum; all blocks of all ranks take turns.
  template <typename Kernel>
  Rows summed(const Rows& rows, sim::Simulator& simulator) {
    Rows out(ranks, std::vector<float>(rows.front().size(), NAN));
    std::vector<typename Kernel::Args> args(ranks);
    std::vector<sim::Launch> launches;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      CollectiveArgs& collective = args[rank].collective;
      collective.rank = rank;
      collective.num_ranks = ranks;
      collective.count = static_cast<std::uint32_t>(rows[rank].size());
      collective.num_blocks = pieces_of(collective.count, CollectiveArgs::kThreads);
      collective.box = box;
      for (std::uint32_t i = 0; i < ranks; ++i) collective.boxes[i] = boxes[i].data();
      collective.epoch = &epochs[rank];
      collective.arrived = &arrived[rank];
      args[rank].x = rows[rank].data();
      args[rank].out = out[rank].data();
      launches.push_back(
          {.thread = [](const void* a,
                        std::byte* shared) { Kernel::run(*static_cast<const typename Kernel::Args*>(a), shared); },
           .args = &args[rank],
           .grid_x = collective.num_blocks,
           .threads = Kernel::kThreads});
    }
    simulator.run_together(launches);
    return out;
  }
};

// AllReduce, but for what it takes for a word of this epoch.
template <typename IsThere>
struct Taking {
  using Args = AllReduce::Args;
  static constexpr unsigned kThreads = AllReduce::kThreads;
  static void run(const Args& a, std::byte*) {
    const LlExchange ll_words(a.collective);
    const std::uint32_t epoch = *a.collective.epoch;
    ll_words.for_words([&](std::uint32_t i) { ll_words.send_all(i, a.x[i]); });
    ll_words.for_words([&](std::uint32_t i) {
      float sum = 0.0f;
      for (std::uint32_t rank = 0; rank < a.collective.num_ranks; ++rank) {
        float of_rank = a.x[i];
        if (rank != a.collective.rank) {
          const LlWord* at =
              a.collective.boxes[a.collective.rank] + box_at(epoch, a.collective.num_ranks, rank, a.collective.box) + i;
          while (!IsThere()(*at, epoch)) sim::pause();
          of_rank = f32_of_bits(at->data);
        }
        sum = rank == 0 ? of_rank : sum + of_rank;
      }
      a.out[i] = sum;
    });
    ll_words.end();
  }
};
struct OfThisEpoch {
  bool operator()(const LlWord& ll_word, std::uint32_t epoch) const { return ll_word.epoch == epoch; }
};
struct OfAnyEpoch {
  bool operator()(const LlWord& ll_word, std::uint32_t) const { return ll_word.epoch != 0; }
};
struct WhateverLiesThere {
  bool operator()(const LlWord&, std::uint32_t) const { return true; }
};

// How many of so many runs, each of a few exchanges in a row, say what the serial sum says.
template <typename Kernel>
int num_right(int runs) {
  int right = 0;
  for (int run = 0; run < runs; ++run) {
    sim::Simulator simulator(static_cast<std::uint64_t>(run) + 1);
    Random random(static_cast<std::uint64_t>(run) + 1);
    Mail mail(2, 40);
    bool all = true;
    for (int collective = 0; collective < 5; ++collective) {
      const Rows rows = random_rows(random, 2, 40);
      for (const std::vector<float>& sum : mail.summed<Kernel>(rows, simulator)) {
        all = all && same_bits(sum, serial_sum(rows));
      }
    }
    right += all ? 1 : 0;
  }
  return right;
}

TEST(AllReduce, IsTheSerialSumBitForBitWithTwoRanksSideBySideInAnyTurns) {
  for (const std::uint32_t ranks : {2u, 3u, 8u}) {
    for (const std::uint32_t count : {1u, 255u, 256u, 257u, 600u}) {
      if (ranks == 8 && count > 256) continue;  // a fiber for every thread
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " numbers, seed " +
                     std::to_string(seed));
        sim::Simulator simulator(seed);
        Random random(seed + count);
        Mail mail(ranks, count);
        const Rows rows = random_rows(random, ranks, count);
        for (const std::vector<float>& sum : mail.summed<AllReduce>(rows, simulator)) {
          EXPECT_TRUE(same_bits(sum, serial_sum(rows)));
        }
      }
    }
  }
}

TEST(AllReduce, UsesItsBoxesAgainOverManyEpochsAndWhereTheyBeginAnew) {
  for (const std::uint32_t first : {kFirstEpoch, 0x7ffffff0u, 0xfffffff0u}) {
    sim::Simulator simulator(first);
    Random random(first);
    Mail mail(2, 50);
    for (std::uint32_t& epoch : mail.epochs) epoch = first;
    std::uint32_t epoch = first;
    for (int collective = 0; collective < 60; ++collective) {
      const Rows rows = random_rows(random, 2, collective % 3 == 0 ? 50 : 3);  // longer ones leave old LL words behind
      for (const std::vector<float>& sum : mail.summed<AllReduce>(rows, simulator)) {
        ASSERT_TRUE(same_bits(sum, serial_sum(rows))) << "exchange " << collective << " from epoch " << first;
      }
      const std::uint32_t before = epoch;
      epoch = epoch_after(epoch);
      ASSERT_NE(epoch, 0u);
      ASSERT_NE(epoch % 2, before % 2);  // the other box
      for (const std::uint32_t counted : mail.epochs) ASSERT_EQ(counted, epoch);
    }
  }
}

// An old LL word of the same number, from 2^32 epochs ago.
int num_right_behind_old_ll_words(std::uint32_t goes_on_at, int runs) {
  int right = 0;
  for (int run = 1; run <= runs; ++run) {
    sim::Simulator simulator(static_cast<std::uint64_t>(run));
    Random random(static_cast<std::uint64_t>(run));
    Mail mail(2, 40);
    mail.summed<AllReduce>(random_rows(random, 2, 40), simulator);  // kFirstEpoch
    for (std::uint32_t& epoch : mail.epochs) epoch = goes_on_at;
    while (mail.epochs.front() != kFirstEpoch) mail.summed<AllReduce>(random_rows(random, 2, 1), simulator);
    const Rows rows = random_rows(random, 2, 40);
    const Rows sums = mail.summed<AllReduce>(rows, simulator);
    right += same_bits(sums[0], serial_sum(rows)) && same_bits(sums[1], serial_sum(rows)) ? 1 : 0;
  }
  return right;
}

TEST(AllReduce, SweepsItsBoxesBeforeTheNumberOfAnEpochComesAgain) {
  EXPECT_EQ(num_right_behind_old_ll_words(0xfffffffdu, 10), 10);
  EXPECT_LT(num_right_behind_old_ll_words(kFirstEpoch, 10), 10);  // without having swept
}

TEST(AllReduce, ThatTakesLlWordsOfOtherEpochsIsFoundOut) {
  EXPECT_EQ(num_right<AllReduce>(10), 10);
  EXPECT_EQ(num_right<Taking<OfThisEpoch>>(10), 10);
  EXPECT_LT(num_right<Taking<OfAnyEpoch>>(10), 10);
  EXPECT_LT(num_right<Taking<WhateverLiesThere>>(10), 10);
}

TEST(AllReduceDeathTest, SaysThatARankNeverCame) {
  const auto alone = [] {
    Mail mail(2, 1);
    sim::Simulator simulator;
    AllReduce::Args args;
    float x = 1.0f;
    args.collective = {
        0, 2, 0, 1, 1, 1, {mail.boxes[0].data(), mail.boxes[1].data()}, mail.epochs.data(), mail.arrived.data()};
    args.x = args.out = &x;
    const sim::Launch launch{
        .thread = [](const void* a, std::byte* s) { AllReduce::run(*static_cast<const AllReduce::Args*>(a), s); },
        .args = &args,
        .threads = AllReduce::kThreads};
    simulator.run_together({&launch, 1});
  };
  EXPECT_DEATH(alone(), "num_pauses_");
}

// Memory of a few floats on every rank of a simulated machine.
struct Machine {
  Ranks ranks;
  std::vector<Device*> devices;

  explicit Machine(std::uint32_t count, std::uint64_t seed = 1) : ranks(make_simulated_ranks(count, seed)) {
    for (const auto& device : ranks.devices) devices.push_back(device.get());
  }
  std::vector<DeviceMemory> memory(const Rows& rows) {
    std::vector<DeviceMemory> out;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      out.emplace_back(*devices[rank], rows[rank].size() * sizeof(float), "numbers");
      devices[rank]->upload(out.back().data(), rows[rank].data(), out.back().bytes());
    }
    return out;
  }
  std::vector<float> read(std::size_t rank, const DeviceMemory& memory) {
    std::vector<float> out(memory.bytes() / sizeof(float));
    devices[rank]->download(out.data(), memory.data(), memory.bytes());
    return out;
  }
};
template <typename T>
std::vector<T*> pointers(const std::vector<DeviceMemory>& memory) {
  std::vector<T*> out;
  for (const DeviceMemory& one : memory) out.push_back(one.as<T>());
  return out;
}

TEST(Collective, SumsMessagesShorterThanABoxAsLongAndLonger) {
  for (const std::uint32_t count : {1u, 39u, 40u, 41u, 79u, 80u, 81u}) {
    Machine machine(2, count);
    Collective collective(machine.devices, {.box = 40, .first_epoch = 0xfffffffeu});
    Random random(count);
    const Rows rows = random_rows(random, 2, count);
    const std::vector<DeviceMemory> x = machine.memory(rows);
    collective.sum(pointers<float>(x), count);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(same_bits(machine.read(rank, x[rank]), serial_sum(rows))) << count;
    }
  }
}

TEST(Collective, GathersOrAddsTheColumnsOfEveryMatrixInThePlacesOfTheWhole) {
  for (const std::uint32_t ranks : {2u, 4u}) {
    for (const bool adds : {false, true}) {
      const std::uint32_t outputs[] = {4 * ranks, ranks, 3 * ranks};
      const Columns columns = columns_of(outputs, ranks);
      const std::uint32_t num_rows = 7;
      Machine machine(ranks, ranks);
      Collective collective(machine.devices, {.box = 15});
      Random random(ranks);
      const Rows parts = random_rows(random, ranks, num_rows * columns.width());
      const std::vector<float> before = random.floats(num_rows * columns.width() * ranks);
      const std::vector<DeviceMemory> from = machine.memory(parts);
      const std::vector<DeviceMemory> out = machine.memory(Rows(ranks, before));
      collective.gather(pointers<const float>(from), columns, num_rows, adds, pointers<float>(out));
      std::vector<float> expected = before;
      for (std::uint32_t row = 0; row < num_rows; ++row) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          for (std::uint32_t c = 0; c < columns.width(); ++c) {
            const float x = parts[rank][row * columns.width() + c];
            float& to = expected[row * columns.width() * ranks + gathered_column(columns, ranks, rank, c)];
            to = adds ? to + x : x;
          }
        }
      }
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(same_bits(machine.read(rank, out[rank]), expected)) << ranks << adds;
      }
    }
  }
}

TEST(CollectiveDeathTest, FindsARankThatWasNeverAskedToCome) {
  if (Machine(1).devices.front()->name() != "simulated") GTEST_SKIP() << "a device waits";
  const auto alone = [] {
    Machine machine(2);
    const std::vector<DeviceMemory> x = machine.memory(Rows(2, {1.0f}));
    machine.devices[0]->start(machine.devices[0]->kernels().all_reduce, {1, 1}, {});
    machine.read(0, x[0]);
  };
  EXPECT_DEATH(alone(), "asked_.empty");
}

}  // namespace
}  // namespace quire::gpu
