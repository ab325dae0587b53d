// The changes that a sequence's rules and grammar make to the logits of its next token, as borrowed lists, and
// adjust(), which applies them.
// Steps   for every token listed in `each`, in this order, each operation in f32:
//           x = x > 0 ? x / repetition : x * repetition    if it was seen
//           x = x - frequency * times                      if times > 0
//           x = x - presence                               if times > 0
//           x = x + bias, clamped to the finite f32 range: an extreme penalty neither masks a token nor breaks a row
//         then -inf for tokens that are forbidden or not allowed. Logits that the model masked (-inf) stay masked.
// Shape   each: a token at most once. allowed [words]: bit t % 32 of word t / 32 is token t; tokens beyond its end are
//         not allowed; an empty span allows all. Tokens outside the row are ignored.
// Owner   borrowed: the function that returns an Edits says until when its spans are valid.
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
  std::uint32_t times = 0;  // occurrences in the answer so far
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

// The edited logit of an allowed token that has an Edit.
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

// Returns the row with its edits applied, in scratch.adjusted[0, V).
std::span<const float> adjust(std::span<const float> logits, const Edits& edits, Scratch& scratch);

}  // namespace quire::sample
