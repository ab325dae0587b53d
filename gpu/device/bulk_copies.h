// Bulk copies (cp.async.bulk) from global to shared memory, and mbarriers that signal their completion, so that threads
// wait for data, and for a stage to be free again, without the rest of the block.
//   A barrier goes from phase to phase: a phase ends when the given number of threads have arrived and all announced
//   bytes have been copied. wait(parity) returns once the phase of that parity has ended: the first phase has parity 0;
//   the phase before the first, parity 1, counts as ended.
//   On the host a copy happens at once or while a thread waits, in an order drawn from the seed.
// Shape   barriers are aligned to 8; a copy is a multiple of 16 bytes, aligned to 16.
// Owner   a barrier lies in the block's shared memory. A barrier of the block stands between begin() and any other use.
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
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // visible to the copy engine, too
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

// The copy's bytes are announced to the barrier before or after this call.
QUIRE_DEVICE void copy_in_bulk(void* shared, const void* memory, std::uint32_t bytes, PhaseBarrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(memory), "r"(bytes), "r"(shared_address(&barrier))
               : "memory");
}

#else

// Not 0: on a device, too, nothing lies at shared address 0.
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

// Stage of step i of a block in a ring of kStages stages, and the parity of its phase there.
template <unsigned kStages>
struct StageOf {
  std::uint32_t stage;
  std::uint32_t parity;
  QUIRE_DEVICE constexpr explicit StageOf(std::uint32_t i) : stage(i % kStages), parity(i / kStages % 2) {}
  // Parity of the phase that ends when the stage's previous user has left it.
  QUIRE_DEVICE constexpr std::uint32_t parity_before() const { return parity ^ 1; }
};

}  // namespace quire::gpu
