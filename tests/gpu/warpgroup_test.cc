// What sm_90a has of its own, on the simulator: where rows lie for four warps, barriers with phases, copies in bulk, products of four
// warps.
#include <gtest/gtest.h>

#include <set>

#include "gpu/kernels/linear_warpgroups.h"
#include "gpu/linear_layers.h"
#include "gpu/pack.h"
#include "gpu/runtime/simulated_device.h"
#include "gpu/simulated/simulator.h"
#include "gpu/tensors.h"
#include "tests/core/cpu/plain_quantised.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu::warpgroup_test {
namespace {

using namespace cpu::test;

template <typename Kernel>
void simulate(std::uint64_t seed, unsigned threads, std::size_t shared_bytes, const typename Kernel::Args& args) {
  sim::Simulator(seed).run(
      {.thread = [](const void* a,
                    std::byte* shared) { Kernel::run(*static_cast<const typename Kernel::Args*>(a), shared); },
       .args = &args,
       .threads = threads,
       .shared_bytes = shared_bytes});
}

TEST(RowsInShared, SaysInADescriptorWhatItWasGivenInTheBitsOfThePtxIsa) {
  for (std::uint32_t address = 0; address < 0x40000; address += 16) {
    const RowsInShared there = RowsInShared::of(RowsInShared{address, 128, 1024}.descriptor());
    ASSERT_EQ(there.address, address);
    ASSERT_EQ(there.to_next_inputs, 128u);
    ASSERT_EQ(there.to_next_rows, 1024u);
  }
  constexpr std::uint64_t kDescriptor = RowsInShared{0x12340, 128, 1024}.descriptor();
  EXPECT_EQ(kDescriptor & 0x3fff, 0x1234u);
  EXPECT_EQ(kDescriptor >> 16 & 0x3fff, 8u);
  EXPECT_EQ(kDescriptor >> 32 & 0x3fff, 64u);
  EXPECT_EQ(kDescriptor >> 46, 0u);  // neither base offset nor swizzle
}

TEST(RowsInShared, FindsEachRowWhereABlockOfRowsHasItAndEightRowsInAllBanks) {
  constexpr std::uint32_t kInputs = 300;
  std::set<std::size_t> places;
  for (std::uint32_t row = 0; row < 2 * kRowBlock; ++row) {
    for (std::uint32_t input = 0; input < num_steps(kInputs) * kStepInputs; ++input) {
      places.insert(place_in_row_blocks(kInputs, row, input));
      const std::size_t step = place_in_row_blocks(kInputs, row / kRowBlock * kRowBlock, input / 64 * 64);
      const RowsInShared part{static_cast<std::uint32_t>(input % 64 / 16 * 256), 128, 1024};
      ASSERT_EQ((place_in_row_blocks(kInputs, row, input) - step) * 2, part.address_of(row % kRowBlock, input % 16));
    }
  }
  EXPECT_EQ(places.size(), 2 * kRowBlock * num_steps(kInputs) * kStepInputs);
  EXPECT_EQ(*places.rbegin() + 1, places.size());
  for (std::uint32_t row = 0; row < kRowBlock; row += 8) {
    for (std::uint32_t inputs = 0; inputs < 16; inputs += 8) {
      std::set<std::uint32_t> banks;
      for (std::uint32_t i = 0; i < 32; ++i) {
        banks.insert(RowsInShared{0, 128, 1024}.address_of(row + i / 4, inputs + i % 4 * 2) / 4 % 32);
      }
      EXPECT_EQ(banks.size(), 32u);
    }
  }
}

TEST(StageOf, NamesThePhaseThatEndsWithTheStepAndTheOneBefore) {
  for (std::uint32_t i = 0; i < 40; ++i) {
    const StageOf<6> at(i);
    const std::uint32_t phase = i / 6;
    EXPECT_EQ(at.stage, i % 6);
    EXPECT_EQ(at.parity, phase % 2);
    EXPECT_EQ(at.parity_before(), (phase + 1) % 2);
  }
}

// A thread copies numbers through two stages, another warp adds them up.
enum class Fault { kNone, kNoWaitForFilled, kNoWaitForEmptied, kTooFewBytes, kNobodyArrives };
template <Fault kFault>
struct AddWhatComes {
  struct Args {
    const float* numbers = nullptr;  // [rounds][64]
    float* sums = nullptr;           // [32]
  };
  static constexpr unsigned kRounds = 9;
  static constexpr std::size_t kShared = 2 * 256 + 4 * sizeof(PhaseBarrier);
  static void run(const Args& a, std::byte* shared) {
    auto* barriers = reinterpret_cast<PhaseBarrier*>(shared + 2 * 256);
    if (thread() == 0) {
      for (unsigned i = 0; i < 4; ++i) barriers[i].begin(i < 2 ? 1 : 32);
    }
    sync_block();
    float sum = 0.0f;
    for (std::uint32_t i = 0; i < kRounds && (thread() == 0 || thread() >= 32); ++i) {
      const StageOf<2> at(i);
      auto* stage = reinterpret_cast<float*>(shared) + at.stage * 64;
      if (thread() == 0) {
        if (kFault != Fault::kNoWaitForEmptied) barriers[2 + at.stage].wait(at.parity_before());
        barriers[at.stage].arrive_and_announce(256);
        copy_in_bulk(stage, a.numbers + i * 64, 128, barriers[at.stage]);
        if (kFault == Fault::kTooFewBytes) continue;
        copy_in_bulk(stage + 32, a.numbers + i * 64 + 32, 128, barriers[at.stage]);
      } else {
        if (kFault != Fault::kNoWaitForFilled) barriers[at.stage].wait(at.parity);
        sum += stage[thread() - 32] + stage[thread()];
        if (kFault != Fault::kNobodyArrives) barriers[2 + at.stage].arrive();
      }
    }
    if (thread() >= 32) a.sums[thread() - 32] = sum;
  }
};
template <Fault kFault>
bool adds_up(std::uint64_t seed) {
  using Kernel = AddWhatComes<kFault>;
  std::vector<float> numbers(Kernel::kRounds * 64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * i % 101);
  std::vector<float> sums(32);
  simulate<Kernel>(seed, 64, Kernel::kShared, {numbers.data(), sums.data()});
  for (std::size_t lane = 0; lane < 32; ++lane) {
    float expected = 0.0f;
    for (std::size_t i = lane; i < numbers.size(); i += 32) expected += numbers[i];
    if (sums[lane] != expected) return false;
  }
  return true;
}

TEST(PhaseBarrier, BringsEveryCopyBeforeItIsLookedAtAndNoneTooEarly) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) EXPECT_TRUE(adds_up<Fault::kNone>(seed));
}

TEST(PhaseBarrierDeathTest, ShowsAForgottenWaitAsAnotherSumAndAPhaseThatNeverEnds) {
  EXPECT_DEATH(
      {
        if (!adds_up<Fault::kNoWaitForFilled>(1)) std::abort();
      },
      "");
  EXPECT_DEATH(
      {
        for (std::uint64_t seed = 1; seed <= 30; ++seed) {
          if (!adds_up<Fault::kNoWaitForEmptied>(seed)) std::abort();
        }
      },
      "");
  EXPECT_DEATH(adds_up<Fault::kTooFewBytes>(1), "num_pauses_");
  EXPECT_DEATH(adds_up<Fault::kNobodyArrives>(1), "num_pauses_");
}

// Four warps multiply by both kinds of instructions, the first so many rows of a block.
template <unsigned kRows>
struct Multiply {
  static constexpr unsigned kRowTiles = kRows / kTileRows;
  struct Args {
    const std::uint32_t* a = nullptr;     // [128][2][4]
    const std::uint16_t* rows = nullptr;  // a step of a block of rows
    Product* by_warps = nullptr;          // [128][kRowTiles]
    Product* by_warpgroup = nullptr;
  };
  static void run(const Args& args, std::byte* shared) {
    auto* rows = reinterpret_cast<std::uint16_t*>(shared);
    for (unsigned i = thread(); i < kRowBlock * kStepInputs; i += kWarpgroup) rows[i] = args.rows[i];
    sync_block();
    std::uint32_t a[2][4];
    std::memcpy(a, args.a + thread() * 8, sizeof a);
    Product sums[kRowTiles];
    WarpgroupProducts<kRows> products;
    products.begin(sums);
    for (unsigned part = 0; part < 2; ++part) {
      products.add(sums, a[part], RowsInShared{shared_address(shared) + part * 256, 128, 1024}.descriptor());
    }
    products.finish(sums);
    for (unsigned r = 0; r < kRowTiles; ++r) args.by_warpgroup[thread() * kRowTiles + r] = sums[r];
    for (unsigned r = 0; r < kRowTiles; ++r) {
      Product sum;
      for (unsigned part = 0; part < 2; ++part) {
        std::uint32_t b[2];
        for (unsigned word = 0; word < 2; ++word) {
          const unsigned input = part * 16 + thread() % 4 * 2 + 8 * word;
          std::memcpy(&b[word], rows + place_in_row_blocks(64, r * 8 + thread() % 32 / 4, input), 4);
        }
        add_product(sum, a[part], b);
      }
      args.by_warps[thread() * kRowTiles + r] = sum;
    }
  }
};

template <unsigned kRows>
void expect_those_of_single_warps() {
  Random random(3);
  std::vector<std::uint32_t> a(128 * 8);
  const auto pair = [&] {
    return std::uint32_t{bf16_of_f32(random.floats(1)[0])} << 16 | bf16_of_f32(random.floats(1)[0]);
  };
  for (std::uint32_t& word : a) word = pair();
  std::vector<std::uint16_t> rows(kRowBlock * kStepInputs);
  for (std::uint16_t& x : rows) x = static_cast<std::uint16_t>(pair());
  std::vector<Product> warps(128 * kRows / 8);
  std::vector<Product> group(128 * kRows / 8);
  simulate<Multiply<kRows>>(5, kWarpgroup, rows.size() * 2, {a.data(), rows.data(), warps.data(), group.data()});
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (unsigned c = 0; c < 4; ++c) ASSERT_EQ(bits_of(group[i].c[c]), bits_of(warps[i].c[c])) << i;
  }
}
TEST(WarpgroupProducts, AreThoseOfSingleWarpsFromTheRowsThatADescriptorNames) {
  expect_those_of_single_warps<32>();
  expect_those_of_single_warps<64>();
  expect_those_of_single_warps<128>();
}

}  // namespace
}  // namespace quire::gpu::warpgroup_test
