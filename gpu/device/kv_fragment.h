// What a lane reads of a tile of K or V, and the tensor cores' words of bf16 that it means.
//   bf16  16 bytes, as they are        fp8, int8  8 bytes: exact in bf16, int8's scales left out
//   int4  4 bytes; code · step + lowest, rounded once to bf16
// Shape   a lane's eight numbers of a tile (layout.h), word w and half h of number 2 w + h.
// Thread  will_read(): any. any_of_warp(): met by all lanes.
// Source  PTX ISA: prefetch. Codes as bf16: codes.h.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/codes.h"
#include "gpu/device/kv_codes.h"
#include "gpu/device/matrix.h"

namespace quire::gpu {

// Whoever reads this line next will find it in the second cache. Nothing comes of it where there is no memory.
QUIRE_DEVICE void will_read([[maybe_unused]] const void* line) {
#if defined(__CUDACC__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
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

template <backend::KvType kType>
struct RawKvFragment {  // bf16
  struct alignas(16) Bits {
    std::uint32_t words[4];
  } bits;
};
template <>
struct RawKvFragment<backend::KvType::kFp8> {
  struct alignas(8) Bits {
    std::uint32_t words[2];
  } bits;
};
template <>
struct RawKvFragment<backend::KvType::kInt8> {
  struct alignas(8) Bits {
    std::uint32_t words[2];
  } bits;
};
template <>
struct RawKvFragment<backend::KvType::kInt4> {
  struct Bits {
    std::uint32_t words[1];
  } bits;
};

// `codes`: of a group's K or V. The lane's.
template <backend::KvType kType>
QUIRE_DEVICE RawKvFragment<kType> raw_kv_fragment(const std::byte* codes, std::uint32_t tile, unsigned lane) {
  using Bits = typename RawKvFragment<kType>::Bits;
  return {reinterpret_cast<const Bits*>(codes)[tile * kWarp + lane]};
}

// Steps and lowests of a lane's inputs, in pairs: those of its words 0 and 1, and of 2 and 3.
struct StepPairs {
  std::uint32_t steps[2];
  std::uint32_t lowests[2];
};
// `scales`: `count` steps and as many lowests, of which the tile's inputs begin at `first`.
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
// Of a pair of fp8 that pair_of_fp8() made `word` of.
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

// `steps` are looked at for int4 alone.
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

// Not finite: 0 times it is no 0.
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
