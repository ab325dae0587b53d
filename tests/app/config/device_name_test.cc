#include "app/config/device_name.h"

#include <gtest/gtest.h>

namespace quire::app::device_name_test {
namespace {

TEST(DeviceName, HasANameAndForAGpuANumber) {
  for (const char* name : {"auto", "cpu", "cuda", "cuda:0", "cuda:7", "cuda:63", "simulated"}) {
    EXPECT_TRUE(is_device(name)) << name;
  }
  for (const char* name : {"", "gpu", "cuda:", "cuda:-1", "cuda:64", "cuda:1x", "cuda: 1", "cuda0", "CUDA", "rocm"}) {
    EXPECT_FALSE(is_device(name)) << name;
  }
}

TEST(DeviceName, OfAGpuGivesItsNumber) {
  EXPECT_EQ(cuda_number("cuda"), 0);
  EXPECT_EQ(cuda_number("cuda:0"), 0);
  EXPECT_EQ(cuda_number("cuda:63"), 63);
  for (const char* name : {"cpu", "auto", "cuda:64", "cuda:", "simulated"}) {
    EXPECT_EQ(cuda_number(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace quire::app::device_name_test
