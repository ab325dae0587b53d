// One sampler for every path that emits a token: a function of the logits, the parameters and the position alone.
// Steps   where a request has rules, the row is adjusted first (edits.h), and the choice is made from that; log
//         probabilities and what is finite are of the row as the model gave it.
//         greedy (temperature < kGreedyTemperature): the highest logit, ties to the lowest id. Else
//           z = (logit - highest logit) / temperature, in f32 (at 1 the division changes no bit and is left out);
//           the filters leave a range of z (filters.h: min-p, top-k, top-p, typical; ties stay together);
//           the choice is argmax of z + Gumbel noise (noise.h; domain target), ties to the lowest id.
//         Then, only where asked for: the chosen token's log probability and the num_top likeliest tokens with theirs
//         (logprob.h), the same for greedy and drawn tokens. The chosen one need not be among the likeliest.
// Highest a device that makes the logits piece by piece finds the highest of each while it is at hand: join() puts them
//         together, and draw() looks for it no more.
// Order   none of this depends on the order in which tokens are visited: a device may split the row as it likes.
// Shape   logits [V], 1 <= V <= 2^20; only [0, V) is read. `room` is for at least num_top <= kMaxTop.
// Thread  any; `scratch` is the caller's and was made for at least V. Nothing here allocates.
// Fails   a NaN or +inf among the logits, or nothing above -inf, before adjusting or after: finite = false, token = -1,
//         no list. -inf alone is legal: it means "masked" and is never drawn.
// Source  Gumbel-max trick (Gumbel 1954; Maddison et al. 2014); Philox4x32-10 (Salmon et al. 2011). z relative to the
//         highest is ours: it cannot overflow, and keeps the most bits where tokens win.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/base/ids.h"
#include "core/sample/edits.h"
#include "core/sample/filters.h"
#include "core/sample/noise.h"
#include "core/sample/params.h"
#include "core/sample/scratch.h"

namespace quire::sample {

constexpr float z_of(float logit, float highest, float temperature) {
  return temperature == 1.0f ? logit - highest : (logit - highest) / temperature;
}

struct Drawn {
  TokenId token = -1;
  bool finite = true;
  float logprob = 0.0f;              // of the token, where params.logprob
  std::span<const Candidate> top{};  // [min(num_top, V)] likeliest first, ties by lowest id: the front of `room`
  std::uint32_t rank = 0;            // score(): 1 + how many tokens have a higher logit
};

// The highest logit of a row or a piece of it; NaN or +inf: one of them is NaN or +inf. No token before `from` has it.
struct Highest {
  float logit = -std::numeric_limits<float>::infinity();
  std::size_t from = 0;
};
Highest highest_of(std::span<const float> logits);
// `later`: of a piece behind those that `earlier` is of.
Highest join(Highest earlier, Highest later);

Drawn draw(std::span<const float> logits, Highest highest, const Params& params, std::uint32_t position,
           Scratch& scratch, std::span<Candidate> room = {}, const Edits& edits = {});
// The same, where nobody has looked yet.
Drawn draw(std::span<const float> logits, const Params& params, std::uint32_t position, Scratch& scratch,
           std::span<Candidate> room = {}, const Edits& edits = {});

// draw() in pieces, for who takes parts of what a row says away before it draws (acceptance.h).
// What is drawn from: scratch.z, of which those in range have the law exp(z) / sum of exp(z). Greedy: the likeliest alone, no z.
struct Odds {
  std::size_t vocab = 0;
  KeptRange range{};
  TokenId likeliest = -1;  // of those in range, the first; -1: the row is not finite
};
Odds odds_of(std::span<const float> logits, Highest highest, const Params& params, const Edits& edits,
             Scratch& scratch);
TokenId draw_from(const Odds& odds, const Params& params, std::uint32_t position, Domain domain,
                  const Scratch& scratch);
// What is asked for besides the token, once that is known.
void describe(Drawn& drawn, std::span<const float> logits, Highest highest, const Params& params, Scratch& scratch,
              std::span<Candidate> room);

// What the row says of a token that is given, in [0, V): nothing is drawn, and nothing adjusted.
Drawn score(std::span<const float> logits, Highest highest, TokenId given, std::uint32_t num_top, Scratch& scratch,
            std::span<Candidate> room = {});

}  // namespace quire::sample
