// Warpgroup product (wgmma): four warps multiply 64 outputs, 32, 64 or 128 rows and 16 inputs in bf16. Weights are in
// registers, as the words of matrix.h, 16 outputs per warp, so that they are stored as for single warps. Rows are in
// shared memory, located by a descriptor.
//   c[o, t] += sum over k of a[o, k] * b[k, t]; a lane's c of rows 8 r .. 8 r + 7 is sums[r], as in matrix.h.
//   Products are in flight from add() to finish(); or in groups, each ended by end_group(), until wait() leaves only
//   the newest kLeft. Until then nothing touches their a and rows, and the sums not before all are done. On the host
//   they happen in wait() and finish().
// Shape   rows in core matrices of 8 rows × 8 inputs, a row's 16 bytes behind another's: 128 bytes that use all banks
//         of the memory, so that no swizzle is needed. The descriptor gives the distances to the next inputs and to the
//         next rows.
// Order   on the device the hardware's; on an H200 its sums were measured to equal those of matrix.h's mma.sync
//         (docs/gpu.md). The simulator adds products with k ascending, as there.
// Thread  called by all lanes of the four warps, the first of which is a multiple of four; at least one add() before
//         finish().
// Source  PTX ISA, wgmma.mma_async and its matrix descriptor; sm_90a alone.
#pragma once

#include "gpu/device/bulk_copies.h"
#include "gpu/device/matrix.h"

#if !defined(__CUDACC__)
#include <deque>
#include <utility>
#include <vector>
#endif

namespace quire::gpu {

inline constexpr unsigned kWarpgroup = 4 * kWarp;
inline constexpr unsigned kWarpgroupRows = 128;

// Location of rows in shared memory. The descriptor has 14 bits each for the address, the distance to the next inputs
// and the distance to the next rows, in units of 16 bytes; its upper bits are 0: no swizzle.
struct RowsInShared {
  std::uint32_t address = 0;
  std::uint32_t to_next_inputs = 0;
  std::uint32_t to_next_rows = 0;

  constexpr std::uint64_t descriptor() const {
    return std::uint64_t{address & 0x3ffffu} >> 4 | std::uint64_t{to_next_inputs >> 4} << 16 |
           std::uint64_t{to_next_rows >> 4} << 32;
  }
  static constexpr RowsInShared of(std::uint64_t descriptor) {
    const auto field = [descriptor](unsigned bit) {
      return static_cast<std::uint32_t>(descriptor >> bit & 0x3fffu) << 4;
    };
    return {field(0), field(16), field(32)};
  }
  constexpr std::uint32_t address_of(std::uint32_t row, std::uint32_t input) const {
    return address + row / 8 * to_next_rows + input / 8 * to_next_inputs + row % 8 * 16 + input % 8 * 2;
  }
};

// Makes a thread's own writes to shared memory visible to products: called by each thread that wrote, before the
// barrier that announces the data. Bulk copies do not need it.
QUIRE_DEVICE void show_to_products() {
#if defined(__CUDACC__)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Makes the compiler compute these words here, not between products that are in flight.
QUIRE_DEVICE void make_here([[maybe_unused]] std::uint32_t (&words)[4]) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
#endif
}

// A thread's part of the four warps' products.
template <unsigned kRows>
class WarpgroupProducts {
 public:
  static_assert(kRows == 32 || kRows == 64 || kRows == 128);
  using Sums = Product[kRows / kTileRows];

#if defined(__CUDACC__)

#define QUIRE_SUMS_OF(s, r) "+f"(s[r].c[0]), "+f"(s[r].c[1]), "+f"(s[r].c[2]), "+f"(s[r].c[3])
#define QUIRE_SUMS_OF_32(s) QUIRE_SUMS_OF(s, 0), QUIRE_SUMS_OF(s, 1), QUIRE_SUMS_OF(s, 2), QUIRE_SUMS_OF(s, 3)
#define QUIRE_SUMS_OF_48(s) QUIRE_SUMS_OF_32(s), QUIRE_SUMS_OF(s, 4), QUIRE_SUMS_OF(s, 5)
#define QUIRE_SUMS_OF_64(s) QUIRE_SUMS_OF_48(s), QUIRE_SUMS_OF(s, 6), QUIRE_SUMS_OF(s, 7)
#define QUIRE_SUMS_OF_128(s)                                                                                 \
  QUIRE_SUMS_OF_64(s), QUIRE_SUMS_OF(s, 8), QUIRE_SUMS_OF(s, 9), QUIRE_SUMS_OF(s, 10), QUIRE_SUMS_OF(s, 11), \
      QUIRE_SUMS_OF(s, 12), QUIRE_SUMS_OF(s, 13), QUIRE_SUMS_OF(s, 14), QUIRE_SUMS_OF(s, 15)
// The instruction `said` with the sums of kRows rows as operands.
#define QUIRE_WITH_SUMS(said, s)                         \
  if constexpr (kRows == 32) {                           \
    asm volatile(said : QUIRE_SUMS_OF_32(s)::"memory");  \
  } else if constexpr (kRows == 48) {                    \
    asm volatile(said : QUIRE_SUMS_OF_48(s)::"memory");  \
  } else if constexpr (kRows == 64) {                    \
    asm volatile(said : QUIRE_SUMS_OF_64(s)::"memory");  \
  } else {                                               \
    asm volatile(said : QUIRE_SUMS_OF_128(s)::"memory"); \
  }
#define QUIRE_MULTIPLY(rows, sums, a, b, s, words, descriptor)                                                \
  asm volatile(                                                                                               \
      "{\n .reg .pred p;\n setp.eq.u32 p, 0, 0;\n"                                                            \
      "wgmma.mma_async.sync.aligned.m64n" rows "k16.f32.bf16.bf16 {" sums "}, {" a "}, " b ", p, 1, 1, 0;\n}" \
      : s                                                                                                     \
      : "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "l"(descriptor)                           \
      : "memory")
#define QUIRE_TO_15 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define QUIRE_TO_23 QUIRE_TO_15 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define QUIRE_TO_31 QUIRE_TO_23 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define QUIRE_TO_63                                                               \
  QUIRE_TO_31                                                                     \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

  // Orders earlier writes to registers before the products.
  QUIRE_DEVICE void begin(Sums& s){QUIRE_WITH_SUMS("wgmma.fence.sync.aligned;", s)} QUIRE_DEVICE
      void add(Sums& s, const std::uint32_t (&a)[4], std::uint64_t rows) {
    if constexpr (kRows == 32) {
      QUIRE_MULTIPLY("32", QUIRE_TO_15, "%16, %17, %18, %19", "%20", QUIRE_SUMS_OF_32(s), a, rows);
    } else if constexpr (kRows == 48) {
      QUIRE_MULTIPLY("48", QUIRE_TO_23, "%24, %25, %26, %27", "%28", QUIRE_SUMS_OF_48(s), a, rows);
    } else if constexpr (kRows == 64) {
      QUIRE_MULTIPLY("64", QUIRE_TO_31, "%32, %33, %34, %35", "%36", QUIRE_SUMS_OF_64(s), a, rows);
    } else {
      QUIRE_MULTIPLY("128", QUIRE_TO_63, "%64, %65, %66, %67", "%68", QUIRE_SUMS_OF_128(s), a, rows);
    }
  }
  // The same while products are in flight, for writes to a.
  QUIRE_DEVICE void go_on() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  QUIRE_DEVICE void go_on(Sums& s){QUIRE_WITH_SUMS("wgmma.fence.sync.aligned;", s)} QUIRE_DEVICE void end_group() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }
  template <unsigned kLeft>
  QUIRE_DEVICE void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
  }
  QUIRE_DEVICE void finish(Sums& s) {
    end_group();
    QUIRE_WITH_SUMS("wgmma.wait_group.sync.aligned 0;", s)
  }

#undef QUIRE_TO_63
#undef QUIRE_TO_31
#undef QUIRE_TO_23
#undef QUIRE_TO_15
#undef QUIRE_MULTIPLY
#undef QUIRE_WITH_SUMS
#undef QUIRE_SUMS_OF_128
#undef QUIRE_SUMS_OF_64
#undef QUIRE_SUMS_OF_48
#undef QUIRE_SUMS_OF_32
#undef QUIRE_SUMS_OF

#else

  void begin(Sums&) { CHECK(open_.empty() && groups_.empty()); }
  void go_on() { CHECK(open_.empty()); }
  void add(Sums& sums, const std::uint32_t (&a)[4], std::uint64_t rows) { open_.push_back({&sums, &a, rows}); }
  void end_group() { groups_.push_back(std::exchange(open_, {})); }
  template <unsigned kLeft>
  void wait() {
    for (; groups_.size() > kLeft; groups_.pop_front()) {
      for (const UnderWay& one : groups_.front()) multiply(one);
    }
  }
  void finish(Sums&) {
    CHECK(!open_.empty() || !groups_.empty());
    if (!open_.empty()) end_group();
    wait<0>();
  }

 private:
  struct UnderWay {
    Sums* sums;
    const std::uint32_t (*a)[4];
    std::uint64_t rows;
  };
  static void multiply(const UnderWay& one) {
    const std::uint32_t(&a)[4] = *one.a;
    const sim::WarpWords& shown = sim::show({a[0], a[1], a[2], a[3]});
    const RowsInShared rows = RowsInShared::of(one.rows);
    const unsigned lane = thread() % kWarp;
    for (unsigned r = 0; r < kRows; ++r) {
      if (r % kTileRows / 2 != lane % 4) continue;
      for (unsigned upper = 0; upper < 2; ++upper) {
        float& sum = (*one.sums)[r / kTileRows].c[upper * 2 + r % 2];
        for (unsigned k = 0; k < kTileInputs; ++k) {
          const unsigned place = place_in_tile(lane / 4 + 8 * upper, k);
          const std::uint32_t word = shown[place / 8][place % 8 / 2];
          sum = fma(f32_of_bf16(static_cast<std::uint16_t>(word >> 16 * (place % 2))), number_at(rows, r, k), sum);
        }
      }
    }
    sim::looked();
  }
  static float number_at(const RowsInShared& rows, unsigned row, unsigned input) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, sim::shared_memory() + (rows.address_of(row, input) - kFirstSharedAddress), sizeof bits);
    return f32_of_bf16(bits);
  }

  std::vector<UnderWay> open_;
  std::deque<std::vector<UnderWay> > groups_;
#endif
};

}  // namespace quire::gpu
