#include "core/engine/beam/beam.h"

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

std::span<const Beam::Continuation> Beam::advance(std::span<const std::vector<sample::Candidate>> candidates) {
  CHECK_EQ(candidates.size(), live_.size());
  struct Ranked {
    double sum;
    std::uint32_t parent;
    sample::Candidate last;
  };
  std::vector<Ranked> all;
  for (std::uint32_t parent = 0; parent < candidates.size(); ++parent) {
    for (const sample::Candidate& candidate : candidates[parent]) {
      if (candidate.logprob == -std::numeric_limits<float>::infinity()) continue;  // masked: no continuation
      all.push_back({live_[parent].sum + candidate.logprob, parent, candidate});
    }
  }
  std::ranges::sort(all, [](const Ranked& a, const Ranked& b) {
    if (a.sum != b.sum) return a.sum > b.sum;
    return a.parent != b.parent ? a.parent < b.parent : a.last.token < b.last.token;
  });

  continuations_.clear();
  ++num_tokens_;
  std::vector<Path> next;
  for (const Ranked& one : all) {
    if (next.size() == search_.width) break;
    const auto last = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({one.last.token, one.last.logprob, live_[one.parent].last});
    if (std::ranges::count(stop_tokens_, one.last.token) != 0) {
      finish({last, one.sum}, num_tokens_, flow::Finish::kStop);
      continue;
    }
    next.push_back({last, one.sum});
    continuations_.push_back({one.parent, one.last.token});
  }
  live_ = std::move(next);
  if (!live_.empty() && num_tokens_ >= max_tokens_) {
    for (const Path& path : live_) finish(path, num_tokens_, flow::Finish::kLength);
    live_.clear();
  }
  if (is_over()) live_.clear();
  if (live_.empty()) end();
  return continuations_;
}

void Beam::finish(Path path, std::uint32_t num_tokens, flow::Finish finish) {
  path.finish = finish;
  path.score = score(path.sum, num_tokens);
  const auto worse = [&](const Path& other) { return other.score < path.score; };
  done_.insert(std::ranges::find_if(done_, worse), path);
  if (done_.size() > search_.num_best) done_.pop_back();
}

void Beam::end() {
  continuations_.clear();
  for (const Path& path : done_) {
    Hypothesis hypothesis{.tokens = {}, .logprobs = {}, .sum = path.sum, .score = path.score, .finish = path.finish};
    for (std::uint32_t at = path.last; at != kRoot; at = nodes_[at].before) {
      hypothesis.tokens.push_back(nodes_[at].token);
      hypothesis.logprobs.push_back(nodes_[at].logprob);
    }
    std::ranges::reverse(hypothesis.tokens);
    std::ranges::reverse(hypothesis.logprobs);
    best_.push_back(std::move(hypothesis));
  }
  nodes_ = {};
}

bool Beam::is_over() const {
  if (live_.empty() || done_.size() < search_.num_best) return live_.empty();
  const std::size_t tokens = search_.length_penalty >= 0.0 ? max_tokens_ : num_tokens_ + 1;
  return score(live_.front().sum, tokens) <= done_.back().score;
}

// The power is computed with our own exp and log, whose results are the same on every machine.
double Beam::score(double sum, std::size_t num_tokens) const {
  const auto length = static_cast<float>(num_tokens);
  if (search_.length_penalty == 0.0) return sum;
  if (search_.length_penalty == 1.0) return sum / length;
  return sum * sample::exp_f32(-static_cast<float>(search_.length_penalty) * sample::log_f32(length));
}

}  // namespace quire::engine
