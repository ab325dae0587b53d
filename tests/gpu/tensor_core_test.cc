// The simulator's tensor cores against plain sums, and codes against the numbers that they say.
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "gpu/device/codes.h"
#include "gpu/device/copies.h"
#include "gpu/device/integer_matrix.h"
#include "gpu/device/stream.h"
#include "gpu/simulated/simulator.h"

namespace quire::gpu::tensor_core_test {
namespace {

TEST(Codes, SayEveryNumberOf8BitsExactlyInBf16) {
  for (std::uint32_t low = 0; low < 256; ++low) {
    for (std::uint32_t high = 0; high < 256; high += low % 2 == 0 ? 1 : 51) {
      const std::uint32_t pair = pair_of_bytes(0xab00cd00u | high << 16 | low);
      EXPECT_EQ(f32_of_bf16(static_cast<std::uint16_t>(pair)), static_cast<std::int8_t>(low));
      EXPECT_EQ(f32_of_bf16(static_cast<std::uint16_t>(pair >> 16)), static_cast<std::int8_t>(high));
    }
  }
}

TEST(Codes, SayEveryNumberOfFp8ExactlyInBf16) {
  for (std::uint32_t low = 0; low < 256; ++low) {
    for (std::uint32_t high = 0; high < 256; high += low % 2 == 0 ? 1 : 51) {
      if ((low & 0x7f) == 0x7f || (high & 0x7f) == 0x7f) continue;  // NaN: no code of a weight
      const std::uint32_t pair = pair_of_fp8_bytes(0xab00cd00u | high << 16 | low);
      const auto expect = [](std::uint32_t half, std::uint32_t code) {
        const float value = f32_of_fp8(static_cast<std::uint8_t>(code));
        EXPECT_EQ(half & 0xffffu, std::bit_cast<std::uint32_t>(value) >> 16) << code;
      };
      expect(pair, low);
      expect(pair >> 16, high);
    }
  }
}

TEST(Codes, SayEveryNumberOf4BitsExactlyInBf16AndInBytes) {
  for (std::uint32_t low = 0; low < 16; ++low) {
    for (std::uint32_t high = 0; high < 16; ++high) {
      const std::uint32_t pair = pair_of_nibbles(0xabc0def0u | high << 16 | low);
      EXPECT_EQ(f32_of_bf16(static_cast<std::uint16_t>(pair)), static_cast<int>(low) - 8);
      EXPECT_EQ(f32_of_bf16(static_cast<std::uint16_t>(pair >> 16)), static_cast<int>(high) - 8);
      const std::uint32_t byte = high << 4 | low;
      for (unsigned at = 0; at < 4; ++at) {
        const auto number = [&](std::uint32_t word) {
          return static_cast<float>(static_cast<std::int8_t>(word >> 8 * at)) * kNibbleUnit;
        };
        EXPECT_EQ(number(bytes_of_low_nibbles(byte << 8 * at)), static_cast<int>(low ^ 8) - 8);
        EXPECT_EQ(number(bytes_of_high_nibbles(byte << 8 * at)), static_cast<int>(high ^ 8) - 8);
      }
    }
  }
}

struct Fragments {
  std::uint32_t a[32][4];
  std::uint32_t b[32][2];
  IntegerProduct c[32];
};

struct MultiplyIntegers {
  static void run(Fragments& all) {
    const unsigned lane = thread();
    for (int times = 0; times < 2; ++times) add_product(all.c[lane], all.a[lane], all.b[lane]);
  }
};

TEST(IntegerMatrix, AddsUpProductsOfSignedBytes) {
  std::mt19937 random(5);
  int a[16][32];
  int b[32][8];
  Fragments all{};
  for (unsigned k = 0; k < 32; ++k) {
    for (unsigned output = 0; output < 16; ++output) {
      a[output][k] = static_cast<int>(random() % 256) - 128;
      const IntegerPlace at = integer_place(output, k);
      all.a[at.lane][at.word] |= (static_cast<std::uint32_t>(a[output][k]) & 255u) << 8 * at.byte;
    }
    for (unsigned row = 0; row < 8; ++row) {
      b[k][row] = static_cast<int>(random() % 256) - 128;
      all.b[row * 4 + k % 16 / 4][k / 16] |= (static_cast<std::uint32_t>(b[k][row]) & 255u) << 8 * (k % 4);
    }
  }
  Fragments* const args = &all;
  sim::Simulator(3).run(
      {.thread = [](const void* given, std::byte*) { MultiplyIntegers::run(**static_cast<Fragments* const*>(given)); },
       .args = &args});
  for (unsigned output = 0; output < 16; ++output) {
    for (unsigned row = 0; row < 8; ++row) {
      int sum = 0;
      for (unsigned k = 0; k < 32; ++k) sum += a[output][k] * b[k][row];
      EXPECT_EQ(all.c[output % 8 * 4 + row / 2].c[output / 8 * 2 + row % 2], 2 * sum) << output << " " << row;
    }
  }
}

struct Arrivals {
  std::uint32_t* counter;
  std::uint32_t count;
  std::vector<int>* lasts;
};
struct Arrive {
  static void run(const Arrivals& a) {
    if (last_to_arrive(a.counter, a.count)) (*a.lasts)[block().x] += 1;
  }
};

TEST(Arrival, IsTheLastOnceInEveryRoundForAllThreadsOfTheBlock) {
  std::uint32_t counter = 0;
  std::vector<int> lasts(6);
  const Arrivals args{&counter, 3, &lasts};
  sim::Simulator(1).run({.thread = [](const void* a, std::byte*) { Arrive::run(*static_cast<const Arrivals*>(a)); },
                         .args = &args,
                         .grid_x = 6,
                         .threads = 64});
  EXPECT_EQ(lasts, (std::vector<int>{0, 0, 64, 0, 0, 64}));
  EXPECT_EQ(counter, 0u);
}

// Four groups of a copy each: what has come when all but the newest so many are waited for.
template <unsigned kLeft>
std::vector<std::uint32_t> come(bool end_last) {
  Words4 from[4];
  Words4 to[4];
  for (std::uint32_t i = 0; i < 4; ++i) from[i].words[3] = i + 1;
  Copies copies;
  for (int i = 0; i < 4; ++i) {
    copies.add(&to[i], &from[i]);
    if (i < 3 || end_last) copies.end_group();
  }
  copies.wait<kLeft>();
  std::vector<std::uint32_t> words;
  for (const Words4& each : to) words.push_back(each.words[3]);
  return words;
}

TEST(Copies, ComeGroupByGroupWhenTheyAreWaitedForAndNotBefore) {
  EXPECT_EQ(come<0>(true), (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(come<1>(true), (std::vector<std::uint32_t>{1, 2, 3, 0}));
  EXPECT_EQ(come<3>(true), (std::vector<std::uint32_t>{1, 0, 0, 0}));
  EXPECT_EQ(come<4>(true), (std::vector<std::uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(come<0>(false), (std::vector<std::uint32_t>{1, 2, 3, 0}));
}

}  // namespace
}  // namespace quire::gpu::tensor_core_test
