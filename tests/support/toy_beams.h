// Beam search on the toy's table of log probabilities, by brute force: every token of the vocabulary is a continuation,
// nothing ends early, and all that was ever done is ranked at the end.
#pragma once

#include <algorithm>
#include <vector>

#include "core/flow/request.h"
#include "core/flow/token_event.h"
#include "core/sample/math.h"
#include "tests/support/toy_model.h"

namespace quire::testing {

struct ToyHypothesis {
  std::vector<TokenId> tokens{};
  std::vector<float> logprobs{};  // of each
  double sum = 0.0;
  flow::Finish finish = flow::Finish::kNone;
};

inline double toy_score(const ToyHypothesis& one, double length_penalty) {
  const auto length = static_cast<float>(one.tokens.size());
  if (length_penalty == 0.0) return one.sum;
  if (length_penalty == 1.0) return one.sum / length;
  return one.sum * sample::exp_f32(-static_cast<float>(length_penalty) * sample::log_f32(length));
}

// The num_best best, best first.
inline std::vector<ToyHypothesis> toy_beams(const flow::Request& request, const ToyModel& model) {
  struct Live {
    ToyHypothesis hypothesis;
    ToyPast past;
  };
  struct Next {
    double sum;
    std::size_t parent;
    TokenId token;
  };
  std::vector<Live> live(1, Live{{}, ToyPast(model)});
  for (const TokenId token : request.prompt) live[0].past.push(token);
  std::vector<ToyHypothesis> done;
  for (std::uint32_t length = 1; length <= request.max_tokens && !live.empty(); ++length) {
    std::vector<Next> all;
    for (std::size_t parent = 0; parent < live.size(); ++parent) {
      for (std::uint32_t token = 0; token < model.vocab; ++token) {
        const auto id = static_cast<TokenId>(token);
        all.push_back({live[parent].hypothesis.sum + toy_logprob(live[parent].past.hash(), id), parent, id});
      }
    }
    std::ranges::sort(all, [](const Next& a, const Next& b) {
      if (a.sum != b.sum) return a.sum > b.sum;
      return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
    });
    std::vector<Live> next;
    for (const Next& one : all) {
      if (next.size() == request.beam->width) break;
      ToyHypothesis hypothesis = live[one.parent].hypothesis;
      hypothesis.tokens.push_back(one.token);
      hypothesis.logprobs.push_back(toy_logprob(live[one.parent].past.hash(), one.token));
      hypothesis.sum = one.sum;
      const bool stops = std::ranges::count(request.stop_tokens, one.token) != 0;
      if (stops) {
        hypothesis.finish = flow::Finish::kStop;
        done.push_back(std::move(hypothesis));
        continue;
      }
      next.push_back({std::move(hypothesis), live[one.parent].past});
      next.back().past.push(one.token);
    }
    live = std::move(next);
    if (length < request.max_tokens) continue;
    for (Live& one : live) {
      one.hypothesis.finish = flow::Finish::kLength;
      done.push_back(one.hypothesis);
    }
  }
  std::ranges::stable_sort(done, [&](const ToyHypothesis& a, const ToyHypothesis& b) {
    return toy_score(a, request.beam->length_penalty) > toy_score(b, request.beam->length_penalty);
  });
  done.resize(std::min(done.size(), std::size_t{request.beam->num_best}));
  return done;
}

}  // namespace quire::testing
