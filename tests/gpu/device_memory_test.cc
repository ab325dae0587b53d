// What the GPU's ops take of the device: as planning says, all before the first step, and no more than the limits.
#include <gmock/gmock.h>

#include "core/base/start_error.h"
#include "gpu/gpu_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "gpu/tensors.h"
#include "tests/core/cpu/tiny_decoder.h"

namespace quire::gpu::device_memory_test {
namespace {

using namespace cpu::test;
using backend::Format;
using backend::Ops;

// Ops, and the device that they own.
struct Watched {
  Device* device = nullptr;
  std::unique_ptr<Ops> ops;

  explicit Watched(const GpuOptions& options = {}) {
    auto made = make_simulated_device();
    device = made.get();
    ops = make_gpu_ops(std::move(made), options);
  }
};

TEST(DeviceMemory, IsAllTakenBeforeTheFirstStep) {
  for (const KvType kv : backend::kAllKvTypes) {
    Device* device = nullptr;
    DecoderConfig config;
    config.dtype = kv == KvType::kF32 ? Format::kF32 : Format::kBF16;
    config.kv = kv;
    config.make = [&] {
      Watched made({.max_rows = kMaxRows});
      device = made.device;
      return std::move(made.ops);
    };
    cpu::test::Decoder decoder(config);
    const std::uint64_t before = device->num_taken();
    EXPECT_GT(before, 10u);
    const std::uint32_t lengths[] = {33, 1, 20};
    const std::uint32_t all[] = {0, 1, 2};
    const Prompts prompts(lengths, config.block_tokens);
    // Each step is another size, the last the longest.
    for (const auto& [first, chunk] : {std::pair{0u, 1u}, {1u, 2u}, {3u, 30u}}) {
      const OwnedBatch batch = make_step(prompts, first, chunk, config.block_tokens, all);
      std::vector<backend::Choice> choices(batch.logits_rows.size());
      decoder.step(batch.view(), choices);
    }
    EXPECT_EQ(device->num_taken(), before) << backend::name_of(kv);
  }
}

TEST(DeviceMemory, HoldsWeightsAndBlocksOfTheSizesThatArePlannedWith) {
  const Watched watched;
  Random random(1);
  for (const Format dtype : {Format::kF32, Format::kBF16, Format::kF16}) {
    const Matrix w = random_matrix(random, 33, 47, dtype);
    for (const std::optional<backend::Format> quantize :
         std::initializer_list<std::optional<backend::Format>>{std::nullopt, backend::Format::kInt8}) {
      const backend::HostMatrix view = w.view();
      const std::uint64_t planned = weight_bytes(33, 47, quantize.value_or(dtype));
      EXPECT_EQ(watched.ops->pack({&view, 1}, {}, quantize)->bytes(), planned);
    }
  }
  for (const KvType type : backend::kAllKvTypes) {
    const backend::KvShape shape{backend::kv_layers(3, 2, 20), 32, 5, type, type == KvType::kInt4 ? 7u : 0u};
    const std::uint64_t planned =
        5 * kv_block_bytes(shape) + shape.num_residual_groups * kv_residual_group_bytes(shape);
    EXPECT_EQ(watched.ops->make_kv(shape)->bytes(), planned) << backend::name_of(type);
  }
}

// 70 billion numbers in bf16 would else be held twice: 139 GB of main memory beside the GPU's.
TEST(DeviceMemory, IsAllThatIsLeftOfAWeightWhenItsPackedBytesAreForgotten) {
  const Watched watched;
  Random random(1);
  const Matrix w = random_matrix(random, 40, 70, Format::kBF16);
  const backend::HostMatrix view = w.view();
  const auto packed = watched.ops->pack({&view, 1}, {});
  const auto owner = std::make_shared<std::vector<std::byte>>(packed->packed().begin(), packed->packed().end());
  const auto weight = watched.ops->adopt({40, 70, backend::Format::kBF16, false}, *owner, owner);
  const std::size_t bytes = weight->bytes();
  EXPECT_EQ(owner.use_count(), 2);
  weight->free_host_copy();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(weight->packed().empty());
  EXPECT_EQ(weight->bytes(), bytes);
  EXPECT_EQ(static_cast<const DeviceWeight&>(*weight).view().n, 40u);
}

TEST(DeviceMemory, IsFreeAgainWhenNobodyHoldsIt) {
  const auto device = make_simulated_device();
  if (device->name() != "simulated") GTEST_SKIP() << "a driver takes memory in larger pieces";
  const std::uint64_t all = device->free_bytes();
  {
    const DeviceMemory one(*device, 256, "a test");
    EXPECT_EQ(device->free_bytes(), all - 256);
    const DeviceMemory two(*device, 257, "a test");  // on boundaries of 256 bytes
    EXPECT_EQ(device->free_bytes(), all - 256 - 512);
  }
  EXPECT_EQ(device->free_bytes(), all);
  EXPECT_EQ(device->num_taken(), 2u);
  EXPECT_THROW(DeviceMemory(*device, all + 1, "a test"), StartError);
}

OwnedBatch with_table(std::uint32_t entries) {
  OwnedBatch batch;
  batch.add(0, 1, std::vector<BlockId>(entries, BlockId{0}), 16);
  return batch;
}

TEST(DeviceMemoryDeathTest, HasRoomForBlockTablesUpToTheLimit) {
  const Watched watched({.max_rows = 4, .max_table_entries = 10});
  for (const std::uint32_t entries : {9u, 10u}) watched.ops->begin(with_table(entries).view());
  EXPECT_DEATH(watched.ops->begin(with_table(11).view()), "table_entries");
}

TEST(SimulatedDevice, ReportsTheTimeBetweenTwoPlacesInItsQueue) {
  const auto device = make_simulated_device();
  device->mark(0);
  const DeviceMemory memory(*device, 1 << 20, "a test");
  device->fill(memory.data(), std::byte{1}, memory.bytes());
  device->mark(Device::kMarks - 1);
  EXPECT_GT(device->seconds_between(0, Device::kMarks - 1), 0.0);
}

}  // namespace
}  // namespace quire::gpu::device_memory_test
