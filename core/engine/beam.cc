#include "core/engine/beam.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/sample/math.h"

namespace quire::engine {

Beam::Beam(const flow::BeamSearch& search, std::uint32_t max_tokens, std::span<const TokenId> stop_tokens)
    : search_(search), max_tokens_(max_tokens), stop_tokens_(stop_tokens.begin(), stop_tokens.end()), live_(1) {
  CHECK_GE(search.width, 1u);
  CHECK_GE(search.num_best, 1u);
  CHECK_LE(search.num_best, search.width);
  CHECK_GE(max_tokens, 1u);
}

std::span<const Beam::Step> Beam::advance(std::span<const std::vector<sample::Candidate>> offers) {
  CHECK_EQ(offers.size(), live_.size());
  struct Continuation {
    double sum;
    std::uint32_t parent;
    sample::Candidate last;
  };
  std::vector<Continuation> all;
  for (std::uint32_t parent = 0; parent < offers.size(); ++parent) {
    for (const sample::Candidate& candidate : offers[parent]) {
      if (candidate.logprob == -std::numeric_limits<float>::infinity()) continue;  // masked: no continuation at all
      all.push_back({live_[parent].sum + candidate.logprob, parent, candidate});
    }
  }
  std::ranges::sort(all, [](const Continuation& a, const Continuation& b) {
    if (a.sum != b.sum) return a.sum > b.sum;
    return a.parent != b.parent ? a.parent < b.parent : a.last.token < b.last.token;
  });

  steps_.clear();
  std::vector<Hypothesis> next;
  for (const Continuation& one : all) {
    if (next.size() == search_.width) break;
    Hypothesis hypothesis = live_[one.parent];
    hypothesis.tokens.push_back(one.last.token);
    hypothesis.logprobs.push_back(one.last.logprob);
    hypothesis.sum = one.sum;
    if (std::ranges::count(stop_tokens_, one.last.token) != 0) {
      finish(std::move(hypothesis), flow::Finish::kStop);
      continue;
    }
    next.push_back(std::move(hypothesis));
    steps_.push_back({one.parent, one.last.token});
  }
  live_ = std::move(next);
  if (!live_.empty() && live_.front().tokens.size() >= max_tokens_) {
    for (Hypothesis& hypothesis : live_) finish(std::move(hypothesis), flow::Finish::kLength);
    live_.clear();
  }
  if (is_over()) live_.clear();
  if (live_.empty()) steps_.clear();
  return steps_;
}

void Beam::finish(Hypothesis hypothesis, flow::Finish finish) {
  hypothesis.finish = finish;
  hypothesis.score = score(hypothesis.sum, hypothesis.tokens.size());
  const auto worse = [&](const Hypothesis& other) { return other.score < hypothesis.score; };
  done_.insert(std::ranges::find_if(done_, worse), std::move(hypothesis));
  if (done_.size() > search_.num_best) done_.pop_back();
}

// Sums only fall. With a penalty above zero the best that a sum can become is as long as possible, else as short as
// possible.
bool Beam::is_over() const {
  if (live_.empty() || done_.size() < search_.num_best) return live_.empty();
  const std::size_t tokens = search_.length_penalty >= 0.0 ? max_tokens_ : live_.front().tokens.size() + 1;
  return score(live_.front().sum, tokens) <= done_.back().score;
}

// The power by our own exp and log: the same on every machine.
double Beam::score(double sum, std::size_t num_tokens) const {
  const auto length = static_cast<float>(num_tokens);
  if (search_.length_penalty == 0.0) return sum;
  if (search_.length_penalty == 1.0) return sum / length;
  return sum * sample::exp_f32(-static_cast<float>(search_.length_penalty) * sample::log_f32(length));
}

}  // namespace quire::engine
