// A model small enough to reason about: what a row computes is a hash of all the tokens it can see, what it stores
// beside its token depends on what it saw (as K and V of a deep layer do), and every log probability is a table look-up
// by hash. Pure functions of tokens: ToyRunner must come to the same through block tables, copies, swaps and caches.
//   stored(q) = mix(token q, q, seen(q))    seen(p) = sum of stored(q) for the q < p that p may see
//   what p says is chosen by the hash seen(p) + stored(p)
// Several groups of layers each have a sum of their own, of the q that p may see there; seen(p) is a weighted sum of
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/flow/request.h"
#include "core/kv/cache_group.h"
#include "core/sample/params.h"

namespace quire::testing {

inline constexpr std::uint32_t kToyVocab = 997;
inline constexpr std::uint32_t kToyGroup = 16;  // positions that a KvPolicy keeps or drops together
inline constexpr std::uint32_t kToySpan = 256;  // positions after which a KvPolicy drops some

struct ToyModel {
  std::uint32_t vocab = kToyVocab;
  std::vector<kv::CacheGroup> groups{kv::CacheGroup{}};  // of its layers, by the positions that a row sees
};

inline ToyModel toy_window(std::uint32_t window) { return {.groups = {{kv::CacheGroup::Kind::kWindow, window}}}; }

// One number for the sums that a row sees in its groups.
inline std::uint64_t toy_seen(std::span<const std::uint64_t> sums) {
  std::uint64_t seen = 0;
  for (std::size_t group = 0; group < sums.size(); ++group) seen += sums[group] * (2 * group + 1);
  return seen;
}

// A prompt for each seed.
inline std::vector<TokenId> toy_prompt(std::uint32_t length, std::uint32_t seed, const ToyModel& model = {}) {
  std::mt19937 random(seed);
  std::vector<TokenId> prompt(length);
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % kToyVocab % model.vocab);
  return prompt;
}

inline std::uint64_t toy_mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}

inline std::uint64_t toy_stored(TokenId token, std::uint32_t position, std::uint64_t seen) {
  return toy_mix(toy_mix(seen, static_cast<std::uint64_t>(token)), position);
}

// How much the row at `position`, whose hash this is, looks at a group: so little that ties are common.
inline std::uint64_t toy_vote(std::uint64_t hash, std::uint32_t position, std::uint32_t group) {
  return toy_mix(toy_mix(hash, position), group) % 64 == 0 ? 1 : 0;
}

inline TokenId toy_choose(std::uint64_t hash, const sample::Params& params, std::uint32_t position,
                          const ToyModel& model = {}) {
  const bool greedy = params.temperature < sample::kGreedyTemperature;
  const std::uint64_t noise = greedy ? 0 : toy_mix(params.seed + 1, params.choice_index);
  return static_cast<TokenId>(toy_mix(toy_mix(hash, noise), position) % model.vocab);
}

// The table of log probabilities: multiples of 1/8, so that sums are exact and ties are common.
inline float toy_logprob(std::uint64_t hash, TokenId token) {
  return -static_cast<float>(1 + toy_mix(hash, static_cast<std::uint64_t>(token) + 77) % 48) / 8.0f;
}

// The row of them.
inline std::vector<float> toy_row(std::uint64_t hash, const ToyModel& model) {
  std::vector<float> row(model.vocab);
  for (std::uint32_t token = 0; token < model.vocab; ++token)
    row[token] = toy_logprob(hash, static_cast<TokenId>(token));
  return row;
}

// Under rules: of the tokens that they favour most (or mind least), the first from toy_choose()'s on. -1: they forbid
// all.
inline TokenId toy_choose_adjusted(std::span<const float> row, std::span<const float> adjusted, TokenId from) {
  TokenId best = -1;
  float favour = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::size_t token = (static_cast<std::size_t>(from) + i) % row.size();
    if (adjusted[token] - row[token] > favour) {
      favour = adjusted[token] - row[token];
      best = static_cast<TokenId>(token);
    }
  }
  return best;
}

inline constexpr std::uint32_t kToyHidden = 3;

// A row's hidden state: of many sizes, so that the order in which such rows are added up tells.
inline float toy_hidden(std::uint64_t hash, std::uint32_t i) {
  const std::uint64_t bits = toy_mix(hash, i + 1234567);
  return std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits >> 40)) - 8388608.0f,
                    static_cast<int>(bits % 80) - 40);
}

inline std::uint32_t toy_rank(std::uint64_t hash, TokenId token, const ToyModel& model) {
  const std::vector<float> row = toy_row(hash, model);
  const auto higher = [&](float other) { return other > toy_logprob(hash, token); };
  return 1 + static_cast<std::uint32_t>(std::ranges::count_if(row, higher));
}

// The `count` likeliest tokens, likeliest first, ties by lowest id.
inline void toy_top(std::uint64_t hash, std::uint32_t count, const ToyModel& model,
                    std::vector<sample::Candidate>& out) {
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (std::uint32_t token = 0; token < model.vocab; ++token) {
    out.push_back({static_cast<TokenId>(token), toy_logprob(hash, static_cast<TokenId>(token))});
  }
  const auto kept = std::min<std::ptrdiff_t>(count, model.vocab);
  std::partial_sort(out.begin() + first, out.begin() + first + kept, out.end(),
                    [](const sample::Candidate& a, const sample::Candidate& b) {
                      return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
                    });
  out.resize(static_cast<std::size_t>(first + kept));
}

// The past of one sequence, token by token: what the next row sees, under a KvPolicy too.
class ToyPast {
 public:
  explicit ToyPast(const ToyModel& model = {}, const flow::KvPolicy& policy = {})
      : model_(model), policy_(policy), sums_(model.groups.size()), lowest_(model.groups.size()) {}

  void push(TokenId token) {
    const auto position = length();
    if (lossy() && position % kToySpan == 0 && position > 0) evict();
    if (position % kToyGroup == 0) {
      kept_.push_back(true);
      accumulated_scores_.push_back(0);
    }
    for (std::size_t group = 0; group < sums_.size(); ++group) {
      for (; lowest_[group] < model_.groups[group].first_needed(position); ++lowest_[group]) {
        if (kept_[lowest_[group] / kToyGroup]) sums_[group] -= stored_[lowest_[group]];
      }
    }
    stored_.push_back(toy_stored(token, position, toy_seen(sums_)));
    for (std::uint64_t& sum : sums_) sum += stored_.back();
    if (policy_.kind != flow::KvPolicy::Kind::kHeavyHitters) return;
    for (std::uint32_t group = 0; group < kept_.size(); ++group) {
      if (kept_[group]) accumulated_scores_[group] += toy_vote(hash(), position, group);
    }
  }

  std::uint32_t length() const { return static_cast<std::uint32_t>(stored_.size()); }
  std::uint64_t hash() const { return toy_seen(sums_); }  // of what the last row saw, itself included
  const std::vector<bool>& kept_groups() const { return kept_; }

 private:
  bool lossy() const { return policy_.kind != flow::KvPolicy::Kind::kFull; }

  // A span begins: of the groups that are neither sinks nor in the window the policy keeps the most looked at, or none.
  void evict() {
    const std::uint32_t window_begin = length() > policy_.window ? length() - policy_.window : 0;
    std::vector<std::uint32_t> others;
    for (std::uint32_t group = policy_.sinks / kToyGroup; group < window_begin / kToyGroup; ++group) {
      if (kept_[group]) others.push_back(group);
    }
    std::stable_sort(others.begin(), others.end(),
                     [this](auto a, auto b) { return accumulated_scores_[a] > accumulated_scores_[b]; });
    const bool accumulated_scores_count = policy_.kind == flow::KvPolicy::Kind::kHeavyHitters;
    for (std::size_t i = accumulated_scores_count ? policy_.budget / kToyGroup : 0; i < others.size(); ++i)
      kept_[others[i]] = false;
    for (std::size_t group = 0; group < sums_.size(); ++group) {
      sums_[group] = 0;
      for (std::uint32_t q = lowest_[group]; q < length(); ++q) sums_[group] += kept_[q / kToyGroup] ? stored_[q] : 0;
    }
  }

  ToyModel model_;
  flow::KvPolicy policy_;
  std::vector<std::uint64_t> stored_;              // [length]
  std::vector<bool> kept_;                         // by group
  std::vector<std::uint64_t> accumulated_scores_;  // by group
  std::vector<std::uint64_t> sums_;                // by group of layers
  std::vector<std::uint32_t> lowest_;              // likewise: the first position that a row sees
};

// The sums of a pooled prompt, from its tokens alone.
inline std::vector<double> toy_embedding(std::span<const TokenId> prompt, flow::Pooling pooling,
                                         const ToyModel& model = {}) {
  ToyPast past(model);
  std::vector<double> sums(kToyHidden);
  for (const TokenId token : prompt) {
    past.push(token);
    const bool counts = pooling == flow::Pooling::kMean || past.length() == prompt.size();
    for (std::uint32_t i = 0; i < kToyHidden && counts; ++i) sums[i] += double{toy_hidden(past.hash(), i)};
  }
  return sums;
}

// What a lone request must answer, from its tokens alone.
inline std::vector<TokenId> toy_answer(std::span<const TokenId> prompt, const sample::Params& params,
                                       std::uint32_t count, const ToyModel& model = {},
                                       const flow::KvPolicy& policy = {}) {
  ToyPast past(model, policy);
  for (const TokenId token : prompt) past.push(token);
  std::vector<TokenId> answer;
  while (answer.size() < count) {
    answer.push_back(toy_choose(past.hash(), params, past.length(), model));
    past.push(answer.back());
  }
  return answer;
}

}  // namespace quire::testing
