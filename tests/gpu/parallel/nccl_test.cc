// NCCL as it is asked for, by way of a library that works in host memory (fake_nccl.cc): unmeasured, since it takes two
// GPUs.
#include "gpu/parallel/nccl.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "core/base/start_error.h"
#include "gpu/parallel/collective.h"
#include "gpu/parallel/shards.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu {
namespace {

using cpu::test::Random;
using cpu::test::same_bits;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kFake = QUIRE_FAKE_NCCL;
constexpr int kDevices[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

// The same library as the ops load: what it is told here holds for them.
class Fake {
 public:
  Fake() : handle_(dlopen(kFake, RTLD_NOW)) { EXPECT_NE(handle_, nullptr) << dlerror(); }
  ~Fake() {
    fail(nullptr);
    dlclose(handle_);
  }
  void fail(const char* call) { reinterpret_cast<void (*)(const char*)>(dlsym(handle_, "fake_nccl_fail"))(call); }
  int calls() const { return reinterpret_cast<int (*)()>(dlsym(handle_, "fake_nccl_calls"))(); }

 private:
  void* handle_;
};

std::string refusal(std::span<const int> devices, const std::string& library) {
  try {
    const Nccl nccl(devices, library);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(Nccl, ThatIsNotThereSaysWhatToInstall) {
  EXPECT_THAT(refusal({kDevices, 2}, "libnccl.so.of-nobody"),
              AllOf(HasSubstr("libnccl.so.of-nobody"), HasSubstr("install libnccl2"), HasSubstr("LD_LIBRARY_PATH")));
}

TEST(Nccl, ThatIsAnotherLibrarySaysWhatItLacks) {
  EXPECT_THAT(refusal({kDevices, 2}, "libm.so.6"), HasSubstr("libm.so.6 has no ncclCommInitAll: it is not NCCL 2"));
}

TEST(Nccl, ThatRefusesToBeginIsNamedWithItsCallAndReason) {
  Fake fake;
  EXPECT_EQ(refusal({kDevices, 2}, kFake), "");
  const int twice[] = {0, 0};
  EXPECT_THAT(refusal(twice, kFake), AllOf(HasSubstr("fake_nccl"), HasSubstr("ncclCommInitAll: invalid usage (5)")));
  fake.fail("ncclCommInitAll");
  EXPECT_THAT(refusal({kDevices, 2}, kFake), HasSubstr("ncclCommInitAll: internal error (3)"));
}

TEST(Nccl, GathersInTheOrderOfRanksAndSums) {
  const Fake fake;
  for (const std::size_t ranks : {2u, 3u, 8u}) {
    Nccl nccl({kDevices, ranks}, kFake);
    const std::vector<void*> queues(ranks);
    std::vector<std::vector<float>> parts;
    std::vector<std::vector<float>> all(ranks, std::vector<float>(ranks * 5));
    std::vector<const float*> from;
    std::vector<float*> to;
    std::vector<float*> in_place;
    std::vector<float> expected;
    std::vector<float> sum(5);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < 5; ++i) expected.push_back(static_cast<float>(rank * 100 + i));
      parts.emplace_back(expected.end() - 5, expected.end());
      for (std::size_t i = 0; i < 5; ++i) sum[i] += parts.back()[i];  // whole numbers: no order
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      from.push_back(parts[rank].data());
      in_place.push_back(parts[rank].data());
      to.push_back(all[rank].data());
    }
    nccl.gather(from, 5, to, queues);
    nccl.sum(in_place, 5, queues);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(all[rank], expected);
      EXPECT_EQ(parts[rank], sum);
    }
  }
}

TEST(Nccl, ThatFailsWhileServingIsADeviceThatFailedAndSaysWhichCall) {
  for (const char* call : {"ncclGroupStart", "ncclAllGather", "ncclGroupEnd"}) {
    Fake fake;
    Nccl nccl({kDevices, 2}, kFake);
    fake.fail(call);
    std::vector<float> numbers(4);
    const float* from[] = {numbers.data(), numbers.data() + 1};
    float* to[] = {numbers.data(), numbers.data() + 2};
    void* queues[] = {nullptr, nullptr};
    EXPECT_THAT([&] { nccl.gather(from, 1, to, queues); }, ThrowsMessage<DeviceError>(HasSubstr(call)));
  }
}

// Messages longer than a box go by the library, shorter ones by our own kernels: the same comes out.
TEST(Nccl, BringsLongMessagesWhereOurOwnKernelsWouldBringThem) {
  const Fake fake;
  for (const bool adds : {false, true}) {
    for (const std::uint32_t rows : {3u, 4u}) {  // 15 numbers of a rank are no more than a box has
      const std::uint32_t outputs[] = {6, 4};
      const Columns columns = columns_of(outputs, 2);
      const std::size_t count = std::size_t{rows} * columns.width();
      std::vector<std::vector<float>> results;
      const int calls = fake.calls();
      for (const bool by_library : {false, true}) {
        Ranks ranks = make_simulated_ranks(2);
        Device* const devices[] = {ranks.devices[0].get(), ranks.devices[1].get()};
        Collective collective(devices, {.box = 15}, ranks.rendezvous.get(),
                              by_library ? std::make_unique<Nccl>(std::span(kDevices, 2), kFake) : nullptr);
        collective.make_room(2 * count);
        Random random(rows);
        std::vector<DeviceMemory> parts;
        std::vector<DeviceMemory> out;
        for (Device* device : devices) {
          parts.emplace_back(*device, count * sizeof(float), "a part");
          out.emplace_back(*device, 2 * count * sizeof(float), "rows");
          device->upload(parts.back().data(), random.floats(count).data(), parts.back().bytes());
          device->fill(out.back().data(), std::byte{0}, out.back().bytes());
        }
        const float* const from[] = {parts[0].as<float>(), parts[1].as<float>()};
        float* const to[] = {out[0].as<float>(), out[1].as<float>()};
        collective.gather(from, columns, rows, adds, to);
        collective.gather(from, columns, rows, adds, to);
        for (std::size_t rank = 0; rank < 2; ++rank) {
          devices[rank]->download(results.emplace_back(2 * count).data(), to[rank], out[rank].bytes());
        }
      }
      EXPECT_EQ(fake.calls() - calls, rows == 3 ? 0 : 2);
      for (const std::vector<float>& result : results) EXPECT_TRUE(same_bits(result, results.front()));
    }
  }
}

}  // namespace
}  // namespace quire::gpu
