// Kernels that begin before their turn: those that there are touch nothing but constants until then, and one that does is found out.
#include <gtest/gtest.h>

#include "gpu/gpu_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/plain_quantised.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu {
namespace {

using namespace cpu::test;
using backend::Quantize;

// Adds a constant to what is there.
struct Sum {
  float* values = nullptr;
  const float* constant = nullptr;
};
struct ReadsAConstantEarly {
  using Args = Sum;
  static constexpr unsigned kThreads = 64;
  static constexpr bool kTakesItsTurn = true;
  static void run(const Args& a, std::byte*) {
    const float x = a.constant[thread()];
    take_turn();
    a.values[thread()] += x;
  }
};
struct ReadsEarly : ReadsAConstantEarly {
  static void run(const Args& a, std::byte*) {
    const float x = a.values[thread()];
    take_turn();
    a.values[thread()] = x + a.constant[thread()];
  }
};
struct WritesEarly : ReadsAConstantEarly {
  static void run(const Args& a, std::byte*) {
    a.values[thread()] = a.constant[thread()];
    take_turn();
  }
};
struct NeverTakesItsTurn : ReadsAConstantEarly {
  static void run(const Args&, std::byte*) {}
};
struct LeavesEarly : ReadsAConstantEarly {
  static void run(const Args& a, std::byte*) {
    if (thread() == 5) return;
    take_turn();
    a.values[thread()] += a.constant[thread()];
  }
};

template <typename Kernel>
Entry<Kernel> entry() {
  return {reinterpret_cast<const void*>(+[](const void* args, std::byte* shared) {
    run_in_turn<Kernel>(*static_cast<const typename Kernel::Args*>(args), shared);
  })};
}

// Kernels of these tests are code of the host.
bool is_simulated() { return make_simulated_device()->name() == "simulated"; }

template <typename Kernel>
std::vector<float> run_twice(Pace pace, bool overlap) {
  const auto device = make_simulated_device(3, pace);
  device->let_kernels_overlap(overlap);
  const DeviceMemory values(*device, 64 * sizeof(float), "values");
  const DeviceMemory constant(*device, 64 * sizeof(float), "a constant", Use::kConstant);
  const std::vector<float> ones(64, 1.0f);
  device->upload(values.data(), ones.data(), values.bytes());
  device->upload(constant.data(), ones.data(), constant.bytes());
  for (int times = 0; times < 2; ++times) {
    device->start(entry<Kernel>(), {1, 1}, {values.as<float>(), constant.as<const float>()});
  }
  std::vector<float> out(64);
  device->download(out.data(), values.data(), values.bytes());
  return out;
}

TEST(Overlap, LetsAKernelReadConstantsBeforeItsTurnAndEverythingAfterIt) {
  if (!is_simulated()) GTEST_SKIP();
  const std::vector<float> threes(64, 3.0f);
  for (const bool overlap : {false, true}) {
    for (const Pace pace : {Pace::kAtOnce, Pace::kLate, Pace::kEarly}) {
      EXPECT_EQ(run_twice<ReadsAConstantEarly>(pace, overlap), threes);
    }
  }
}

TEST(OverlapDeathTest, FindsAKernelThatTouchesWhatOthersWriteBeforeItsTurn) {
  if (!is_simulated()) GTEST_SKIP();
  EXPECT_DEATH(run_twice<ReadsEarly>(Pace::kEarly, true), "");
  EXPECT_DEATH(run_twice<WritesEarly>(Pace::kEarly, true), "");
  EXPECT_EQ(run_twice<ReadsEarly>(Pace::kEarly, false), std::vector<float>(64, 3.0f));  // it may: nothing overlaps
}

TEST(OverlapDeathTest, FindsThreadsThatDoNotTakeTheirTurn) {
  if (!is_simulated()) GTEST_SKIP();
  EXPECT_DEATH(run_twice<NeverTakesItsTurn>(Pace::kEarly, true), "taking_turns_");
  EXPECT_DEATH(run_twice<LeavesEarly>(Pace::kEarly, true), "taking_turns_");
}

// Those that take it by themselves; all others take it first (EngineOnGpu runs them).
TEST(Overlap, MultipliesEarlyWithTheSameBits) {
  for (const Quantize quantize :
       {Quantize::kNone, Quantize::kInt8, Quantize::kInt4, Quantize::kW8A8, Quantize::kW4A8, Quantize::kFp8}) {
    Random random(11);
    const Matrix w = random_matrix(random, 70, 600, DType::kBF16);
    const std::vector<float> x = random.floats(std::size_t{40} * 600);
    const auto out = [&](Pace pace, std::uint32_t rows) {
      const auto ops = make_gpu_ops(make_simulated_device(4, pace), {.max_rows = 40});
      return run_linear(*ops, {x.begin(), x.begin() + rows * 600}, *pack(*ops, w, quantize), rows);
    };
    for (const std::uint32_t rows : {1u, 9u, 17u, 33u}) {
      EXPECT_TRUE(same_bits(out(Pace::kEarly, rows), out(Pace::kAtOnce, rows))) << rows;
    }
  }
}

}  // namespace
}  // namespace quire::gpu
