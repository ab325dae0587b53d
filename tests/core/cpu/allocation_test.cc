// After start no step allocates: operator new is counted while steps of every size run.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/core/cpu/tiny_decoder.h"

namespace {

std::atomic<long> num_allocations{0};  // by any thread of this test program

void* counted(std::size_t bytes, std::size_t alignment) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: g++ 12 would see malloc on one side of a pair and operator delete on the other, and warn.
#define NOT_INLINED [[gnu::noinline]]
NOT_INLINED void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
NOT_INLINED void* operator new[](std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
NOT_INLINED void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
NOT_INLINED void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
NOT_INLINED void operator delete(void* memory) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace quire::cpu::test {
namespace {

TEST(Steps, AllocateNothingNotEvenTheFirst) {
  for (const std::uint32_t threads : {1u, 2u, 3u}) {
    DecoderConfig config;
    config.threads = threads;
    if (threads == 3) config.kv = KvType::kInt4;
    Decoder decoder(config);
    const std::uint32_t lengths[] = {300, 80, 2};
    const std::uint32_t all[] = {0, 1, 2};
    const Prompts prompts(lengths, config.block_tokens);
    for (const std::uint32_t chunk : {1u, 30u, 130u}) {
      for (std::uint32_t first = 0; first < 300; first += chunk) {
        OwnedBatch batch = make_step(prompts, first, chunk, config.block_tokens, all);
        for (backend::Speaker& speaker : batch.speakers) {
          speaker.params.logprob = true;
          speaker.params.num_top = sample::kMaxTop;
        }
        std::vector<backend::Choice> choices(batch.speakers.size());
        const long before = num_allocations.load();
        decoder.step(batch.view(), choices);
        ASSERT_EQ(num_allocations.load(), before) << "chunk " << chunk << " at " << first;
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test
