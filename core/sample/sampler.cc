#include "core/sample/sampler.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/sample/logprob.h"

namespace quire::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool finite(Highest highest) { return highest.logit < kInfinity && highest.logit > -kInfinity; }

void shift_and_scale(std::span<const float> logits, float highest, float temperature, Scratch& scratch);

}  // namespace

SampledToken draw(std::span<const float> logits, const Params& params, std::uint32_t position, Scratch& scratch,
                  std::span<Candidate> room, const Edits& edits) {
  return draw(logits, highest_of(logits), params, position, scratch, room, edits);
}

SampledToken draw(std::span<const float> logits, Highest highest, const Params& params, std::uint32_t position,
                  Scratch& scratch, std::span<Candidate> room, const Edits& edits) {
  CHECK_GT(logits.size(), 0u);
  CHECK_LE(logits.size(), kMaxVocab);
  CHECK_LE(logits.size(), scratch.kept.size());
  CHECK_LE(params.num_top, kMaxTop);
  CHECK_LE(params.num_top, room.size());

  const RowDistribution odds = distribution_of(logits, highest, params, edits, scratch);
  if (odds.likeliest < 0) return {-1, false};
  SampledToken drawn{.token = odds.likeliest};
  if (params.temperature >= kGreedyTemperature) {
    drawn.token = draw_from(odds, params, position, Domain::kTarget, scratch);
  }
  describe(drawn, logits, highest, params, scratch, room);
  return drawn;
}

void describe(SampledToken& drawn, std::span<const float> logits, Highest highest, const Params& params,
              Scratch& scratch, std::span<Candidate> room) {
  if (!params.logprob && params.num_top == 0) return;
  const double log_sum = log_sum_of(logits, highest.logit, scratch);
  if (params.logprob) drawn.logprob = logprob_of(logits[static_cast<std::size_t>(drawn.token)], highest.logit, log_sum);
  drawn.top = list_likeliest(logits, highest.logit, log_sum, room.first(params.num_top));
}

SampledToken score(std::span<const float> logits, Highest highest, TokenId given, std::uint32_t num_top,
                   Scratch& scratch, std::span<Candidate> room) {
  CHECK_LE(logits.size(), scratch.weights.size());
  CHECK_LT(static_cast<std::size_t>(given), logits.size());
  CHECK_LE(num_top, kMaxTop);
  CHECK_LE(num_top, room.size());
  if (!finite(highest)) return {-1, false};
  const double log_sum = log_sum_of(logits, highest.logit, scratch);
  const float logit = logits[static_cast<std::size_t>(given)];
  SampledToken scored{.token = given};
  scored.logprob = logprob_of(logit, highest.logit, log_sum);
  scored.top = list_likeliest(logits, highest.logit, log_sum, room.first(num_top));
  scored.rank = 1;
  for (const float other : logits) scored.rank += other > logit ? 1 : 0;
  return scored;
}

// Works in independent lanes, so that the compiler can use vectors.
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

RowDistribution distribution_of(std::span<const float> logits, Highest highest, const Params& params,
                                const Edits& edits, Scratch& scratch) {
  if (!finite(highest)) return {};
  if (!edits.empty()) {
    logits = adjust(logits, edits, scratch);
    highest = highest_of(logits);
    if (!finite(highest)) return {};
  }
  RowDistribution odds{.vocab = logits.size()};
  const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(highest.from);
  odds.likeliest = static_cast<TokenId>(std::find(begin, logits.end(), highest.logit) - logits.begin());
  if (params.temperature < kGreedyTemperature) return odds;
  shift_and_scale(logits, highest.logit, params.temperature, scratch);
  odds.range = kept_range(params, logits.size(), scratch);
  if (odds.range.highest < 0.0f) {
    const auto first = std::find(scratch.z.begin(), scratch.z.end(), odds.range.highest);
    odds.likeliest = static_cast<TokenId>(first - scratch.z.begin());
  }
  return odds;
}

// argmax of z + noise over the z in range. Noise is bounded, so most tokens are ruled out before their noise, or its
// logarithms, are computed. The likeliest token in range goes first, so that the bounds rule out many from the start.
TokenId draw_from(const RowDistribution& odds, const Params& params, std::uint32_t position, Domain domain,
                  const Scratch& scratch) {
  const float* z = scratch.z.data();
  const KeptRange range = odds.range;
  TokenId best = odds.likeliest;
  float best_score = z[best] + gumbel(params.seed, best, position, params.choice_index, domain);
  for (std::size_t first = 0; first < odds.vocab; first += kTokensPerNoiseBlock) {
    const float block_z = std::max(std::max(z[first], z[first + 1]), std::max(z[first + 2], z[first + 3]));
    if (block_z < range.lowest || block_z + kGumbelHighest < best_score) continue;
    const auto block = static_cast<std::uint32_t>(first / kTokensPerNoiseBlock);
    const PhiloxCounter noise = noise_block(params.seed, block, position, params.choice_index, domain);
    for (std::uint32_t i = 0; i < kTokensPerNoiseBlock; ++i) {
      const float token_z = z[first + i];
      if (token_z < range.lowest || token_z > range.highest) continue;
      if (token_z + gumbel_bound(noise.words[i]) < best_score) continue;
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

namespace {

// Fills scratch.z, and pads it with -inf to the end of the last noise block.
void shift_and_scale(std::span<const float> logits, float highest, float temperature, Scratch& scratch) {
  float* z = scratch.z.data();
  const std::size_t vocab = logits.size();
  if (temperature == 1.0f) {
    for (std::size_t i = 0; i < vocab; ++i) z[i] = z_of(logits[i], highest, 1.0f);
  } else {
    for (std::size_t i = 0; i < vocab; ++i) z[i] = z_of(logits[i], highest, temperature);
  }
  for (std::size_t i = vocab; i % kTokensPerNoiseBlock != 0; ++i) z[i] = -kInfinity;
}

}  // namespace
}  // namespace quire::sample
