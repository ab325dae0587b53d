// What every stream of a schedule must hear, from tokens alone.
// Thread  any; pure.
#pragma once

#include <vector>

#include "core/flow/request.h"
#include "core/flow/token_event.h"
#include "tests/sim/scenario.h"

namespace quire::sim {

// What is said of a token.
struct Score {
  float logprob = 0.0f;
  std::uint32_t rank = 0;
  std::vector<flow::Candidate> top;
};

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<Score> scores;  // of each
  flow::Finish finish = flow::Finish::kNone;
  bool may_fail = false;               // a beam search may run hypotheses that are spoilt before it is over
  std::vector<Score> prompt_scores{};  // of each token of the prompt but the first
  std::vector<double> embedding{};     // of a prompt that is pooled
};

struct Expected {
  flow::Request request;        // when it comes, and when its first token is due, are the world's to set
  std::vector<Answer> answers;  // one for each stream
};

// The first tokens of a stem.
std::vector<TokenId> stem(const World& world, int number, int length);

// One for each arrival.
std::vector<Expected> expect(const Scenario& scenario);

}  // namespace quire::sim
