// What a sequence's rules and grammar do to the logits of its next token, as borrowed lists, and the one function that does
// it.
// Steps   for every token listed, in this order, each operation in f32:
//           x = x > 0 ? x / repetition : x * repetition    where it was seen
//           x = x - frequency * times                      where it was said
//           x = x - presence                               where it was said
//           x = x + bias, and no farther than the largest finite number: an extreme penalty neither masks nor breaks a row
//         then -inf for what is forbidden and what is not allowed. What the model masked (-inf) stays masked.
// Shape   each: a token at most once. allowed [words]: bit t % 32 of word t / 32 is token t; beyond it nothing is allowed;
//         empty: all are. Tokens outside the row are passed over.
// Owner   borrowed: whoever made them says until when.
// Thread  any, with its own scratch; nothing allocates.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/base/ids.h"
#include "core/sample/scratch.h"

namespace quire::sample {

struct Edit {
  TokenId token = -1;
  std::uint32_t times = 0;  // in the answer so far: how often it was said
  float bias = 0.0f;
  bool seen = false;  // in the prompt or the answer so far
};

struct Edits {
  float repetition = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  std::span<const Edit> each{};
  std::span<const TokenId> forbidden{};
  std::span<const std::uint32_t> allowed{};

  bool empty() const { return each.empty() && forbidden.empty() && allowed.empty(); }
};

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// A logit that is allowed, of a token that is listed.
constexpr float edited(float x, const Edit& edit, float repetition, float frequency, float presence) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (x == kMasked) return x;
  if (edit.seen) x = x > 0.0f ? x / repetition : x * repetition;
  if (edit.times != 0) {
    x = x - frequency * static_cast<float>(edit.times);
    x = x - presence;
  }
  x = x + edit.bias;
  return x < -kMost ? -kMost : kMost < x ? kMost : x;
}

// The row as it is to be drawn from: scratch.adjusted[0, V).
std::span<const float> adjust(std::span<const float> logits, const Edits& edits, Scratch& scratch);

}  // namespace quire::sample
