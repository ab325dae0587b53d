// The product of four warps at a time: 64 outputs, 32, 64 or 128 rows and 16 inputs in bf16. Weights are in registers, the words of matrix.h, 16
// outputs a warp, so that they lie in memory as for single warps; rows are in shared memory, where a descriptor says they are.
//   c[o, t] += sum over k of a[o, k] * b[k, t]; a lane's c of rows 8 r .. 8 r + 7 is sums[r], as in matrix.h.
//   Products are under way from add() to finish(), or in groups, each ended by end_group(), until wait() says how many
//   of the newest may be left: until then nobody touches their a and rows, nor sums before all are done. On the host
//   they happen in these.
// Shape   rows in core matrices, of 8 rows × 8 inputs, a row's 16 bytes behind the other's: 128 bytes that all banks of the memory have a
//         part in, so that nothing needs to be swizzled. Neighbours along inputs and along rows are where the descriptor says.
// Order   on the device the hardware's; whether it is that of matrix.h is to be proven on one. The simulator adds products with k
//         ascending, as there.
// Thread  met by all lanes of the four warps, whose first is a multiple of four; at least one add() before finish().
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

// Where rows lie: 14 bits each of the address, the way to the next inputs and the way to the next rows, in units of 16 bytes; the upper
// bits say that nothing is swizzled.
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

// What a thread wrote to the block's shared memory by itself is there for products, once a barrier has said that it did: by each thread
// that wrote, before the barrier. Copies in bulk need it not.
QUIRE_DEVICE void show_to_products() {
#if defined(__CUDACC__)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// The compiler makes these words here, and not between products that are under way.
QUIRE_DEVICE void make_here([[maybe_unused]] std::uint32_t (&words)[4]) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
#endif
}

// A thread's share of the four warps' products.
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
// `said` with the sums of as many rows.
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

  // What was put into registers is there.
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
  // The same while products are under way, for what was put into a.
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
