// Chained 64-bit hash of a token sequence: it names the prefix that a cached row is a function of.
// Shape   chained(chained(kChainRoot, a), b) is the hash of the text a b. Never 0, which means "no row".
// Thread  any; pure.
// Source  mixing function of splitmix64 (Steele et al. 2014). A collision costs a worse draft, never a wrong token.
#pragma once

#include <cstdint>

#include "core/base/ids.h"

namespace quire::speculate {

constexpr std::uint64_t chained(std::uint64_t before, TokenId token) {
  std::uint64_t x = before + 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) + 1);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x == 0 ? 1 : x;
}

inline constexpr std::uint64_t kChainRoot = 0x243f6a8885a308d3u;  // arbitrary start value

}  // namespace quire::speculate
