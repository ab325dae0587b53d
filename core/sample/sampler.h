// The sampler of every path that emits a token: a function of the logits, the parameters and the position alone.
// Steps   if a request has rules, the row is adjusted first (edits.h) and the token is sampled from the adjusted row;
//         log probabilities and the finite check use the row as the model gave it.
//         greedy (temperature < kGreedyTemperature): the highest logit, ties to the lowest id. Otherwise
//           z = (logit - highest logit) / temperature, in f32 (at 1 the division changes no bit and is left out);
//           the filters leave a range of z (filters.h: min-p, top-k, top-p, typical; ties stay together);
//           the sampled token is the argmax of z + Gumbel noise (noise.h; Domain::kTarget), ties to the lowest id.
//         Then, only if asked for: the sampled token's log probability, and the num_top likeliest tokens with theirs
//         (logprob.h), the same for greedy and sampled tokens. The sampled token need not be among the likeliest.
// Highest a device that makes the logits in pieces finds the highest logit of each piece then: join() combines them,
//         and draw() does not search again.
// Order   nothing here depends on the order in which tokens are visited: a device may split the row as it likes.
// Shape   logits [V], 1 <= V <= 2^20; only [0, V) is read. `room` has at least num_top <= kMaxTop entries.
// Thread  any; `scratch` is the caller's and was made for at least V. Nothing here allocates.
// Fails   a NaN or +inf among the logits, or nothing above -inf, before adjusting or after: finite = false, token = -1,
//         no list. -inf alone is legal: it means "masked" and is never sampled.
// Source  Gumbel-max trick (Gumbel 1954; Maddison et al. 2014); Philox4x32-10 (Salmon et al. 2011). z relative to the
//         highest is ours: it cannot overflow, and likely tokens keep the most bits.
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

struct SampledToken {
  TokenId token = -1;
  bool finite = true;
  float logprob = 0.0f;              // of the token, if params.logprob
  std::span<const Candidate> top{};  // [min(num_top, V)] likeliest first, ties by lowest id: the front of `room`
  std::uint32_t rank = 0;            // score(): 1 + the number of tokens with a higher logit
};

// The highest logit of a row or of a piece of it; NaN or +inf if the piece has one. No token before `from` has it.
struct Highest {
  float logit = -std::numeric_limits<float>::infinity();
  std::size_t from = 0;
};
Highest highest_of(std::span<const float> logits);
// `later` is of the piece that follows those of `earlier`.
Highest join(Highest earlier, Highest later);

SampledToken draw(std::span<const float> logits, Highest highest, const Params& params, std::uint32_t position,
                  Scratch& scratch, std::span<Candidate> room = {}, const Edits& edits = {});
// The same if the highest logit is not known yet.
SampledToken draw(std::span<const float> logits, const Params& params, std::uint32_t position, Scratch& scratch,
                  std::span<Candidate> room = {}, const Edits& edits = {});

// The steps of draw(), for rejection sampling, which changes a row's distribution before it samples (acceptance.h).
// The distribution of a row: tokens whose scratch.z is in range have probability exp(z) / sum of exp(z). Greedy: the
// likeliest token alone, and no z.
struct RowDistribution {
  std::size_t vocab = 0;
  KeptRange range{};
  TokenId likeliest = -1;  // the first of equals, in range; -1: the row is not finite
};
RowDistribution distribution_of(std::span<const float> logits, Highest highest, const Params& params,
                                const Edits& edits, Scratch& scratch);
TokenId draw_from(const RowDistribution& odds, const Params& params, std::uint32_t position, Domain domain,
                  const Scratch& scratch);
// Adds the log probability and the likeliest tokens that `params` asks for; drawn.token is known.
void describe(SampledToken& drawn, std::span<const float> logits, Highest highest, const Params& params,
              Scratch& scratch, std::span<Candidate> room);

// The log probability, rank and likeliest tokens of a row for a given token in [0, V). Samples and adjusts nothing.
SampledToken score(std::span<const float> logits, Highest highest, TokenId given, std::uint32_t num_top,
                   Scratch& scratch, std::span<Candidate> room = {});

}  // namespace quire::sample
