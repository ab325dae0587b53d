// The memory that one draw() needs, allocated once so that draw() allocates nothing. Draws leave no result in it.
// Shape   for logits of up to V values; z is padded to whole noise blocks.
// Owner   the caller; one per thread that samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/sample/math.h"

namespace quire::sample {

// Replaces each of values[0, count) by its exp_f32. A backend may bring a faster one with the same bits.
using ExpEach = void (*)(float* values, std::size_t count);

inline void exp_each(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = exp_f32(values[i]);
}

inline constexpr std::size_t kMaxVocab = std::size_t{1} << 20;  // masses of up to 2^40 units: they sum to at most 2^60
inline constexpr std::size_t kSelectBins = 2048;

struct Scratch {
  std::vector<float> adjusted;      // [V] the logits as a request's rules leave them
  std::vector<float> z;             // [V padded] (logit - highest logit) / temperature
  std::vector<float> kept;          // [V] the z that a filter still considers
  std::vector<float> weights;       // [V] exp of each of them
  std::vector<std::uint64_t> bins;  // [kSelectBins]
  ExpEach exp_each;

  explicit Scratch(std::size_t vocab, ExpEach exp = sample::exp_each)
      : adjusted(vocab), z((vocab + 15) / 16 * 16), kept(vocab), weights(vocab), bins(kSelectBins), exp_each(exp) {}
};

}  // namespace quire::sample
