// Kernels of the host that begin before their turn: until then they may read constants, and one that touches more is
// found out.
#include <gtest/gtest.h>

#include "gpu/runtime/simulated_device.h"

namespace quire::gpu::dependent_launch_test {
namespace {

// Adds a constant to what is there.
struct Sum {
  float* values = nullptr;
  const float* constant = nullptr;
};
struct ReadsAConstantEarly {
  using Args = Sum;
  static constexpr unsigned kThreads = 64;
  static constexpr bool kWaitsForPreviousKernel = true;
  static void run(const Args& a, std::byte*) {
    const float x = a.constant[thread()];
    wait_for_previous_kernel();
    a.values[thread()] += x;
  }
};
struct ReadsEarly : ReadsAConstantEarly {
  static void run(const Args& a, std::byte*) {
    const float x = a.values[thread()];
    wait_for_previous_kernel();
    a.values[thread()] = x + a.constant[thread()];
  }
};
struct WritesEarly : ReadsAConstantEarly {
  static void run(const Args& a, std::byte*) {
    a.values[thread()] = a.constant[thread()];
    wait_for_previous_kernel();
  }
};
struct NeverWaitsForPreviousKernel : ReadsAConstantEarly {
  static void run(const Args&, std::byte*) {}
};
struct LeavesEarly : ReadsAConstantEarly {
  static void run(const Args& a, std::byte*) {
    if (thread() == 5) return;
    wait_for_previous_kernel();
    a.values[thread()] += a.constant[thread()];
  }
};

template <typename Kernel>
Entry<Kernel> entry() {
  return {reinterpret_cast<const void*>(+[](const void* args, std::byte* shared) {
    run_dependent<Kernel>(*static_cast<const typename Kernel::Args*>(args), shared);
  })};
}

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

TEST(DependentLaunch, LetsAKernelReadConstantsBeforeItsWaitAndEverythingAfterIt) {
  const std::vector<float> threes(64, 3.0f);
  for (const bool overlap : {false, true}) {
    for (const Pace pace : {Pace::kAtOnce, Pace::kLate, Pace::kEarly}) {
      EXPECT_EQ(run_twice<ReadsAConstantEarly>(pace, overlap), threes);
    }
  }
}

TEST(DependentLaunchDeathTest, FindsAKernelThatTouchesWhatOthersWriteBeforeItsWait) {
  EXPECT_DEATH(run_twice<ReadsEarly>(Pace::kEarly, true), "");
  EXPECT_DEATH(run_twice<WritesEarly>(Pace::kEarly, true), "");
  EXPECT_EQ(run_twice<ReadsEarly>(Pace::kEarly, false), std::vector<float>(64, 3.0f));  // it may: nothing overlaps
}

TEST(DependentLaunchDeathTest, FindsThreadsThatDoNotWaitForThePreviousKernel) {
  EXPECT_DEATH(run_twice<NeverWaitsForPreviousKernel>(Pace::kEarly, true), "dependent_");
  EXPECT_DEATH(run_twice<LeavesEarly>(Pace::kEarly, true), "dependent_");
}

}  // namespace
}  // namespace quire::gpu::dependent_launch_test
