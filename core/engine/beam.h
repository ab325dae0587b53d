// One beam search: which hypotheses go on, and which are done. Knows tokens and log probabilities, no blocks.
//   Continuations of all live hypotheses are walked by (sum of log probabilities, parent, token), best first: one that
//   ends in a stop token is done, the others live on, until `width` live. A hypothesis is also done at max_tokens.
//   score = sum / tokens ^ length_penalty; tokens are the generated ones, the stop token included.
//   Of all that were done the num_best with the highest score are the answer; of equals the one that was done first.
// It ends when nobody lives, or when nobody who lives can still come among the best: no log probability is above zero.
// Shape   at most `width` live hypotheses; at the start one, empty.
// Owner   the Search.
// Thread  engine; pure.
// Source  the beam search of Hugging Face transformers, as documented; ties and the exact early end are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/flow/request.h"
#include "core/flow/token_event.h"
#include "core/sample/params.h"

namespace quire::engine {

struct Hypothesis {
  std::vector<TokenId> tokens;  // generated
  std::vector<float> logprobs;  // of each
  double sum = 0.0;             // of the log probabilities
  double score = 0.0;           // once done
  flow::Finish finish = flow::Finish::kNone;
};

class Beam {
 public:
  // A live hypothesis of the next round: `parent` of this one, and one token more.
  struct Step {
    std::uint32_t parent = 0;
    TokenId token = -1;
  };

  Beam(const flow::BeamSearch& search, std::uint32_t max_tokens, std::span<const TokenId> stop_tokens);

  // How many continuations of each hypothesis suffice: with fewer, stop tokens could crowd others out.
  static std::uint32_t num_candidates(const flow::BeamSearch& search, std::size_t num_stop_tokens) {
    return search.width + static_cast<std::uint32_t>(num_stop_tokens);
  }

  // `offers[i]`: the likeliest continuations of live hypothesis i. Gives the live ones of the next round; none: the
  // search is over.
  std::span<const Step> advance(std::span<const std::vector<sample::Candidate>> offers);

  std::uint32_t num_live() const { return static_cast<std::uint32_t>(live_.size()); }
  // Best first, once it is over.
  std::span<const Hypothesis> best() const { return best_; }

 private:
  // Tokens that live hypotheses have in common are stored once: each is a path from its last token back to the first.
  struct Node {
    TokenId token;
    float logprob;
    std::uint32_t before;  // kRoot: it is the first
  };
  struct Path {
    std::uint32_t last = kRoot;
    double sum = 0.0;
    double score = 0.0;  // once done
    flow::Finish finish = flow::Finish::kNone;
  };
  static constexpr std::uint32_t kRoot = ~0u;

  void finish(Path path, std::uint32_t num_tokens, flow::Finish finish);
  void end();
  bool is_over() const;
  double score(double sum, std::size_t num_tokens) const;

  const flow::BeamSearch search_;
  const std::uint32_t max_tokens_;
  const std::vector<TokenId> stop_tokens_;
  std::vector<Node> nodes_;
  std::vector<Path> live_;  // all of num_tokens_ tokens
  std::uint32_t num_tokens_ = 0;
  std::vector<Path> done_;        // at most num_best, best first
  std::vector<Hypothesis> best_;  // the same, written out once it is over
  std::vector<Step> steps_;
};

}  // namespace quire::engine
