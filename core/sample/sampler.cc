#include "core/sample/sampler.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/sample/filters.h"
#include "core/sample/logprob.h"
#include "core/sample/noise.h"

namespace quire::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TokenId choose(std::span<const float> logits, Highest highest, const Params& params, std::uint32_t position,
               Scratch& scratch);
void shift_and_scale(std::span<const float> logits, float highest, float temperature, Scratch& scratch);
TokenId noisiest(std::size_t vocab, TokenId likeliest, float threshold, const Params& params, std::uint32_t position,
                 const Scratch& scratch);

}  // namespace

Drawn draw(std::span<const float> logits, const Params& params, std::uint32_t position, Scratch& scratch,
           std::span<Candidate> room) {
  return draw(logits, highest_of(logits), params, position, scratch, room);
}

Drawn draw(std::span<const float> logits, Highest highest, const Params& params, std::uint32_t position,
           Scratch& scratch, std::span<Candidate> room) {
  CHECK_GT(logits.size(), 0u);
  CHECK_LE(logits.size(), kMaxVocab);
  CHECK_LE(logits.size(), scratch.kept.size());
  CHECK_LE(params.num_top, kMaxTop);
  CHECK_LE(params.num_top, room.size());

  if (!(highest.logit < kInfinity) || highest.logit == -kInfinity) return {-1, false};
  Drawn drawn;
  drawn.token = choose(logits, highest, params, position, scratch);
  if (!params.logprob && params.num_top == 0) return drawn;

  const double log_sum = log_sum_of(logits, highest.logit, scratch);
  if (params.logprob) drawn.logprob = logprob_of(logits[static_cast<std::size_t>(drawn.token)], highest.logit, log_sum);
  drawn.top = list_likeliest(logits, highest.logit, log_sum, room.first(params.num_top));
  return drawn;
}

// Lanes, so that the compiler can use vectors.
Highest highest_of(std::span<const float> logits) {
  constexpr std::size_t kLanes = 16;
  float highest[kLanes];
  std::uint32_t bad[kLanes] = {};
  std::fill_n(highest, kLanes, -kInfinity);
  const auto see = [&](const float* x, std::size_t count) {
    for (std::size_t lane = 0; lane < count; ++lane) highest[lane] = x[lane] > highest[lane] ? x[lane] : highest[lane];
    for (std::size_t lane = 0; lane < count; ++lane) bad[lane] |= x[lane] < kInfinity ? 0u : 1u;
  };
  const std::size_t whole = logits.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) see(logits.data() + i, kLanes);
  see(logits.data() + whole, logits.size() - whole);
  for (const std::uint32_t lane : bad) {
    if (lane != 0) return {kInfinity};
  }
  return {*std::max_element(highest, highest + kLanes)};
}

Highest join(Highest earlier, Highest later) {
  if (!(earlier.logit < kInfinity)) return earlier;
  return later.logit <= earlier.logit ? earlier : later;  // NaN wins
}

namespace {

TokenId choose(std::span<const float> logits, Highest highest, const Params& params, std::uint32_t position,
               Scratch& scratch) {
  const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(highest.from);
  const auto likeliest = static_cast<TokenId>(std::find(begin, logits.end(), highest.logit) - logits.begin());
  if (params.temperature < kGreedyTemperature) return likeliest;
  shift_and_scale(logits, highest.logit, params.temperature, scratch);
  const float threshold = filter_threshold(params, logits.size(), scratch);
  return noisiest(logits.size(), likeliest, threshold, params, position, scratch);
}

// z, and -inf behind it to the end of the last noise block.
void shift_and_scale(std::span<const float> logits, float highest, float temperature, Scratch& scratch) {
  float* z = scratch.z.data();
  const std::size_t vocab = logits.size();
  if (temperature == 1.0f) {
    for (std::size_t i = 0; i < vocab; ++i) z[i] = logits[i] - highest;
  } else {
    for (std::size_t i = 0; i < vocab; ++i) z[i] = (logits[i] - highest) / temperature;
  }
  for (std::size_t i = vocab; i % kTokensPerNoiseBlock != 0; ++i) z[i] = -kInfinity;
}

// argmax of z + noise over z >= threshold. Noise is bounded, so most tokens are ruled out before their noise, or its
// logarithms, are computed; the likeliest token goes first, to give the bounds something to beat.
TokenId noisiest(std::size_t vocab, TokenId likeliest, float threshold, const Params& params, std::uint32_t position,
                 const Scratch& scratch) {
  TokenId best = likeliest;
  float best_score = gumbel(params.seed, likeliest, position, params.choice_index, Domain::kTarget);
  const float* z = scratch.z.data();
  for (std::size_t first = 0; first < vocab; first += kTokensPerNoiseBlock) {
    const float block_z = std::max(std::max(z[first], z[first + 1]), std::max(z[first + 2], z[first + 3]));
    if (block_z < threshold || block_z + kGumbelHighest < best_score) continue;
    const auto block = static_cast<std::uint32_t>(first / kTokensPerNoiseBlock);
    const PhiloxCounter noise = noise_block(params.seed, block, position, params.choice_index, Domain::kTarget);
    for (std::uint32_t i = 0; i < kTokensPerNoiseBlock; ++i) {
      const float token_z = z[first + i];
      if (token_z < threshold || token_z + gumbel_bound(noise.words[i]) < best_score) continue;
      const float score = token_z + gumbel_of_word(noise.words[i]);
      const auto token = static_cast<TokenId>(first + i);
      if (score > best_score || (score == best_score && token < best)) {
        best = token;
        best_score = score;
      }
    }
  }
  return best;
}

}  // namespace
}  // namespace quire::sample
