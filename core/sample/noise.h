// Gumbel noise of a token: a pure function of seed, token id, position, choice index and domain. No generator state.
// Steps   Philox4x32-10 with key = (low, high half of seed), counter = (token id / 4, position, choice, domain); the
//         word of a token is token id % 4. From the word w, every operation in f32, rounded to nearest even:
//           w <  3 * 2^30:  u = (float(w) + 0.5) * 2^-32;   E = -log_f32(u)
//           w >= 3 * 2^30:  v = (float(~w) + 0.5) * 2^-32;  E = -log_near_one_f32(-v)   (u = 1 - v, too fine for f32)
//           noise = -log_f32(E)
// Range   u lies in [2^-33, 1 - 2^-33], so E is never 0 and the noise is always finite, in [-3.13, 22.88]. A token
//         whose z is more than 26.01 below the highest is never sampled.
// Thread  any. Same bits on host and device.
// Source  Gumbel 1954: the argmax of z + noise has the distribution softmax(z). The two branches are ours: small E
//         decides the argmax, so E must be accurate relative to itself.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/ids.h"
#include "core/sample/math.h"
#include "core/sample/philox.h"

namespace quire::sample {

// The use of the noise. Streams of different domains are independent.
enum class Domain : std::uint32_t { kTarget = 0, kProposal = 1, kCoin = 2, kResidual = 3 };

// A separate stream for each depth, the number of tokens after the last emitted one. A position whose draft tokens were
// verified and not all accepted is drafted again in the next step, at a smaller depth. That it is drafted again depends
// on the old noise, so the new draws need other noise.
constexpr Domain ahead(Domain domain, std::uint32_t depth) {
  return static_cast<Domain>(static_cast<std::uint32_t>(domain) + 4 * depth);
}

inline constexpr std::uint32_t kTokensPerNoiseBlock = 4;
inline constexpr float kGumbelLowest = -3.13f;
inline constexpr float kGumbelHighest = 22.88f;

// The words of tokens [4 * block, 4 * block + 4).
constexpr PhiloxCounter noise_block(std::uint64_t seed, std::uint32_t block, std::uint32_t position,
                                    std::uint32_t choice_index, Domain domain) {
  return philox4x32({{block, position, choice_index, static_cast<std::uint32_t>(domain)}},
                    {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
}

constexpr float gumbel_of_word(std::uint32_t word) {
  const bool near_one = word >= 0xc0000000u;
  const float distance = (static_cast<float>(near_one ? ~word : word) + 0.5f) * 0x1p-32f;
  const float exponential = near_one ? -log_near_one_f32(-distance) : -log_f32(distance);
  return -log_f32(exponential);
}

// An upper bound of gumbel_of_word(word), without a logarithm: E >= v, and v >= 2^-(leading ones of the word + 1).
constexpr float gumbel_bound(std::uint32_t word) {
  return 0.6932f * static_cast<float>(std::countl_one(word) + 1);  // 0.6932 > ln 2: room for every rounding
}

// A uniform number in [2^-33, 1 - 2^-33]: never 0, so an event of probability 0 never happens, and never 1.
constexpr double coin(std::uint64_t seed, std::uint32_t index, std::uint32_t position, std::uint32_t choice_index,
                      Domain domain) {
  const PhiloxCounter block = noise_block(seed, index / kTokensPerNoiseBlock, position, choice_index, domain);
  return (static_cast<double>(block.words[index % kTokensPerNoiseBlock]) + 0.5) * 0x1p-32;
}

constexpr float gumbel(std::uint64_t seed, TokenId token, std::uint32_t position, std::uint32_t choice_index,
                       Domain domain) {
  const auto id = static_cast<std::uint32_t>(token);
  const PhiloxCounter block = noise_block(seed, id / kTokensPerNoiseBlock, position, choice_index, domain);
  return gumbel_of_word(block.words[id % kTokensPerNoiseBlock]);
}

}  // namespace quire::sample
