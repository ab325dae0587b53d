// Copies of any length to what the block shares, by the device's own copier, and the barrier that says when they have come: threads that
// wait for data, and threads that wait for its place to be free again, without the rest of the block.
//   A barrier goes from phase to phase: a phase ends when so many threads have arrived and all bytes that were announced have come. Who
//   waits names the parity of the phase, 0 for the first; of the phase before the first, parity 1, everybody knows that it has ended.
//   On the host a copy happens at once or while somebody waits, in an order that is drawn.
// Shape   barriers on a multiple of 8; copies of a multiple of 16 bytes on multiples of 16.
// Owner   a barrier lies in the block's shared memory; begin() before anybody else looks at it: a barrier of the block stands between.
// Thread  any, each for itself.
// Source  PTX ISA, mbarrier and cp.async.bulk; sm_90 and later.
#pragma once

#include "gpu/device/stream.h"

#if !defined(__CUDACC__)
#include <cstring>

#include "core/base/check.h"
#endif

namespace quire::gpu {

#if defined(__CUDACC__)

QUIRE_DEVICE std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

class alignas(8) PhaseBarrier {
 public:
  QUIRE_DEVICE void begin(std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // the copier is to see it, too
  }
  QUIRE_DEVICE void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  QUIRE_DEVICE void arrive_and_announce(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  QUIRE_DEVICE void wait(std::uint32_t parity) {
    std::uint32_t has_ended = 0;
    while (has_ended == 0) {
      asm volatile(
          "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
          : "=r"(has_ended)
          : "r"(shared_address(this)), "r"(parity)
          : "memory");
    }
  }

 private:
  std::uint64_t state_;
};

// Its bytes were, or will be, announced to the barrier.
QUIRE_DEVICE void copy_in_bulk(void* shared, const void* memory, std::uint32_t bytes, PhaseBarrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(memory), "r"(bytes), "r"(shared_address(&barrier))
               : "memory");
}

#else

// As on a device nothing lies at 0.
inline constexpr std::uint32_t kFirstSharedAddress = 1024;
inline std::uint32_t shared_address(const void* shared) {
  return kFirstSharedAddress + static_cast<std::uint32_t>(static_cast<const std::byte*>(shared) - sim::shared_memory());
}

class alignas(8) PhaseBarrier {
 public:
  void begin(std::uint32_t arrivals) {
    CHECK_LE(arrivals, 0xffu);
    bytes_ = 0;
    arrivals_ = left_ = static_cast<std::uint8_t>(arrivals);
    parity_ = 0;
  }
  void arrive() { arrive_and_announce(0); }
  void arrive_and_announce(std::uint32_t bytes) {
    CHECK_GT(left_, 0u);
    --left_;
    bytes_ += bytes;
    end_phase();
  }
  void come(std::uint32_t bytes) {
    CHECK_LE(bytes, bytes_);
    bytes_ -= bytes;
    end_phase();
  }
  void wait(std::uint32_t parity) const {
    while (parity_ == parity) sim::pause();
  }

 private:
  void end_phase() {
    if (left_ != 0 || bytes_ != 0) return;
    parity_ = parity_ == 0 ? 1 : 0;
    left_ = arrivals_;
  }
  std::uint32_t bytes_;
  std::uint8_t arrivals_;
  std::uint8_t left_;
  std::uint8_t parity_;
};

inline void copy_in_bulk(void* shared, const void* memory, std::uint32_t bytes, PhaseBarrier& barrier) {
  CHECK_EQ(bytes % sizeof(Words4), 0u);
  sim::put_off([=, &barrier] {
    std::memcpy(shared, memory, bytes);
    barrier.come(bytes);
  });
}

#endif

static_assert(sizeof(PhaseBarrier) == 8);

// Which of so many stages step i of a block goes through, and the parity of its phase there.
template <unsigned kStages>
struct StageOf {
  std::uint32_t stage;
  std::uint32_t parity;
  QUIRE_DEVICE constexpr explicit StageOf(std::uint32_t i) : stage(i % kStages), parity(i / kStages % 2) {}
  // Of the phase that ends when whoever was there before has left.
  QUIRE_DEVICE constexpr std::uint32_t parity_before() const { return parity ^ 1; }
};

}  // namespace quire::gpu
