#include "gpu/kernels/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gpu/kernels/table.h"
#include "gpu/runtime/device.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::gpu::rows_test {
namespace {

// Sizes around a unit of 16 bytes and around what a thread block copies.
TEST(CopyBytes, CopiesAsManyBytesAsItIsGivenBetweenPinnedAndDeviceMemory) {
  const auto device = make_simulated_device();
  constexpr std::uint32_t kOfBlock = CopyBytes::kThreads * CopyBytes::kUnit;
  for (const std::uint32_t bytes : {1u, 15u, 16u, 17u, 100u, kOfBlock - 1, kOfBlock, kOfBlock + 1, 3 * kOfBlock + 20}) {
    const PinnedMemory from(*device, bytes + 16, "source");
    const PinnedMemory to(*device, bytes + 16, "destination");
    const DeviceMemory there(*device, bytes + 16, "device memory");
    for (std::uint32_t i = 0; i < bytes + 16; ++i) {
      from.data()[i] = static_cast<std::byte>(i * 7 + i / 256);
      to.data()[i] = std::byte{0xee};
    }
    device->fill(there.data(), std::byte{0xdd}, bytes + 16);
    const Index grid{CopyBytes::blocks_for(bytes), 1};
    device->start(device->kernels().copy_bytes, grid, {there.data(), from.data(), bytes});
    device->start(device->kernels().copy_bytes, grid, {to.data(), there.data(), bytes});
    std::vector<std::byte> kept(bytes + 16);
    device->download(kept.data(), there.data(), bytes + 16);
    EXPECT_TRUE(std::equal(from.data(), from.data() + bytes, kept.begin())) << bytes;
    EXPECT_TRUE(std::equal(from.data(), from.data() + bytes, to.data())) << bytes;
    EXPECT_EQ(std::count(kept.begin() + bytes, kept.end(), std::byte{0xdd}), 16) << bytes;
    EXPECT_EQ(std::count(to.data() + bytes, to.data() + bytes + 16, std::byte{0xee}), 16) << bytes;
  }
}

}  // namespace
}  // namespace quire::gpu::rows_test
