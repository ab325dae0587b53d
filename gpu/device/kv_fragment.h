// Fragments of K and V: what a lane loads of a tile, and its conversion to the bf16 words that the tensor cores take.
//   bf16       16 bytes, used as they are
//   fp8, int8  8 bytes; exact in bf16; int8's scales are left out
//   int4       4 bytes; code · step + lowest, rounded once to bf16
// Shape   a lane's eight numbers of a tile (layout.h): half h of word w is number 2 w + h.
// Thread  will_read() and any_of_warp() are called by all lanes of a warp.
// Source  PTX ISA: ld.global, prefetch, cp.async.bulk.prefetch. Conversion to bf16: codes.h.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/codes.h"
#include "gpu/device/kv_codes.h"
#include "gpu/device/matrix.h"

namespace quire::gpu {

// Prefetches into L2, by a warp. No effect where there is no memory. Address and size are multiples of 16.
QUIRE_DEVICE void will_read([[maybe_unused]] const std::byte* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
  if (thread() % kWarp == 0) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(memory), "r"(static_cast<std::uint32_t>(bytes)));
  }
#elif defined(__CUDACC__)
  constexpr std::size_t kLine = 128;
  for (std::size_t at = thread() % kWarp * kLine; at < bytes; at += kWarp * kLine) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(memory + at));
  }
#endif
}

QUIRE_DEVICE bool any_of_warp(bool says) {
#if defined(__CUDACC__)
  return __any_sync(~0u, says) != 0;
#else
  const sim::WarpWords& shown = sim::show({says ? 1u : 0u});
  bool any = false;
  for (const sim::Words& words : shown) any = any || words[0] != 0;
  sim::looked();
  return any;
#endif
}

struct KvFragment {
  std::uint32_t words[4] = {0, 0, 0, 0};
};

// A lane's words as they are stored.
constexpr unsigned words_of_fragment(backend::KvType type) {
  return type == backend::KvType::kBF16 ? 4 : type == backend::KvType::kInt4 ? 1 : 2;
}
template <backend::KvType kType>
struct RawKvFragment {
  static constexpr unsigned kWords = words_of_fragment(kType);
  struct alignas(kWords * sizeof(std::uint32_t)) Bits {
    std::uint32_t words[kWords];
  } bits;
};

// The lane's fragment of a tile; codes: K or V of a group. The fragment of the i-th tile behind it is i * kWarp
// further.
template <backend::KvType kType>
QUIRE_DEVICE const RawKvFragment<kType>* place_of_fragment(const std::byte* codes, std::uint32_t tile, unsigned lane) {
  return reinterpret_cast<const RawKvFragment<kType>*>(codes) + (tile * kWarp + lane);
}
// Loads from memory that no thread of this kernel writes and that is read once. Loads stay in program order (asm
// volatile), so that all that are wanted at once are issued before the first is waited for.
template <backend::KvType kType>
QUIRE_DEVICE RawKvFragment<kType> load_fragment(const RawKvFragment<kType>* at) {
#if defined(__CUDACC__)
  RawKvFragment<kType> out;
  std::uint32_t(&words)[words_of_fragment(kType)] = out.bits.words;
  if constexpr (words_of_fragment(kType) == 4) {
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(at));
  } else if constexpr (words_of_fragment(kType) == 2) {
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "l"(at));
  } else {
    asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(words[0]) : "l"(at));
  }
  return out;
#else
  return *at;
#endif
}

// Steps and lowests of a lane's inputs, in pairs: [0] for its words 0 and 1, [1] for 2 and 3.
struct StepPairs {
  std::uint32_t steps[2];
  std::uint32_t lowests[2];
};
// `scales`: `count` steps, then `count` lowests; those of the tile's inputs begin at `first`.
QUIRE_DEVICE StepPairs step_pairs(const std::byte* scales, std::uint32_t count, std::uint32_t first, unsigned lane) {
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(scales) + first / 2 + lane % 4;
  return {{pairs[0], pairs[4]}, {pairs[count / 2], pairs[count / 2 + 4]}};
}

// Two bytes, each in the low half of 16 bits.
QUIRE_DEVICE std::uint32_t spread(std::uint32_t bytes) { return (bytes & 0xffu) | (bytes & 0xff00u) << 8; }

QUIRE_DEVICE std::uint32_t pair_of_fp8(std::uint32_t bytes) { return pair_of_fp8_bytes(spread(bytes)); }
QUIRE_DEVICE bool holds_nan_of_fp8(std::uint32_t bytes) {
  return (((bytes & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u) != 0;
}
// Adds the NaNs of a pair of fp8 to the word that pair_of_fp8() made of it.
QUIRE_DEVICE std::uint32_t with_nans_of_fp8(std::uint32_t bytes, std::uint32_t word) {
  const std::uint32_t low = (bytes & 0x7fu) == 0x7fu ? 0x7fc0u : 0u;
  const std::uint32_t high = (bytes & 0x7f00u) == 0x7f00u ? 0x7fc00000u : 0u;
  return word | low | high;
}

QUIRE_DEVICE std::uint32_t pair_of_int8(std::uint32_t bytes) { return pair_of_bytes(spread(bytes)); }

QUIRE_DEVICE std::uint32_t pair_of_int4(std::uint32_t codes, std::uint32_t step, std::uint32_t lowest) {
  constexpr std::uint32_t kOne = 0x3f803f80u;
  const std::uint32_t whole = fma_of_pair((codes & 0x000f000fu) | 0x43004300u, kOne, 0xc300c300u);
  return fma_of_pair(whole, step, lowest);
}

// steps: for int4 only.
template <backend::KvType kType>
QUIRE_DEVICE KvFragment widened(const RawKvFragment<kType>& raw, [[maybe_unused]] const StepPairs& steps) {
  KvFragment out;
  if constexpr (kType == backend::KvType::kFp8) {
    for (unsigned w = 0; w < 4; ++w) out.words[w] = pair_of_fp8(raw.bits.words[w / 2] >> 16 * (w % 2));
    if (holds_nan_of_fp8(raw.bits.words[0]) || holds_nan_of_fp8(raw.bits.words[1])) {
      for (unsigned w = 0; w < 4; ++w) {
        out.words[w] = with_nans_of_fp8(raw.bits.words[w / 2] >> 16 * (w % 2), out.words[w]);
      }
    }
  } else if constexpr (kType == backend::KvType::kInt8) {
    for (unsigned w = 0; w < 4; ++w) out.words[w] = pair_of_int8(raw.bits.words[w / 2] >> 16 * (w % 2));
  } else if constexpr (kType == backend::KvType::kInt4) {
    for (unsigned w = 0; w < 4; ++w) {
      out.words[w] = pair_of_int4(raw.bits.words[0] >> 4 * w, steps.steps[w / 2], steps.lowests[w / 2]);
    }
  } else {
    for (unsigned w = 0; w < 4; ++w) out.words[w] = raw.bits.words[w];
  }
  return out;
}

// True if not finite: 0 times such a number is not 0.
QUIRE_DEVICE bool is_fault(std::uint32_t bf16) { return (bf16 & 0x7f80u) == 0x7f80u; }
QUIRE_DEVICE bool holds_fault(const KvFragment& fragment) {
  bool any = false;
  for (const std::uint32_t word : fragment.words) any = any || is_fault(word) || is_fault(word >> 16);
  return any;
}
QUIRE_DEVICE KvFragment without_faults(const KvFragment& fragment) {
  KvFragment out;
  for (unsigned w = 0; w < 4; ++w) {
    const std::uint32_t word = fragment.words[w];
    out.words[w] = (is_fault(word) ? 0u : word & 0xffffu) | (is_fault(word >> 16) ? 0u : word & 0xffff0000u);
  }
  return out;
}

}  // namespace quire::gpu
