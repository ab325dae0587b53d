// The ranking of one beam search: selects the hypotheses that go on and those that are done. Knows tokens and log
// probabilities, no blocks.
//   The continuations of all live hypotheses are visited in the order of (sum of log probabilities, parent, token),
//   best first: one that ends with a stop token is done, any other is live, until `width` are live. A hypothesis is
//   also done at max_tokens.
//   score = sum / (tokens ^ length_penalty); tokens are the generated ones, the stop token included.
//   The answer is the num_best done hypotheses with the highest scores; of equal scores, those that were done first.
// The search ends when no hypothesis is live, or when num_best are done and the best live one cannot beat the worst of
// them: a sum can only fall, so its best possible score is that of its present sum at max_tokens (length_penalty < 0:
// at the next length).
// Shape   at most `width` live hypotheses; at the start one, which is empty.
// Owner   Search (search.h).
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
  std::vector<float> logprobs;  // of each token
  double sum = 0.0;             // of logprobs
  double score = 0.0;           // once done
  flow::Finish finish = flow::Finish::kNone;
};

class Beam {
 public:
  // A live hypothesis of the next round: live hypothesis `parent` of this round, and one more token.
  struct Continuation {
    std::uint32_t parent = 0;
    TokenId token = -1;
  };

  Beam(const flow::BeamSearch& search, std::uint32_t max_tokens, std::span<const TokenId> stop_tokens);

  // Number of candidates that advance() needs of each hypothesis: `width`, and one for each stop token, which would
  // take the place of a live one.
  static std::uint32_t num_candidates(const flow::BeamSearch& search, std::size_t num_stop_tokens) {
    return search.width + static_cast<std::uint32_t>(num_stop_tokens);
  }

  // candidates[i]: the likeliest next tokens of live hypothesis i. Returns the live hypotheses of the next round, valid
  // until the next call; none: the search is over.
  std::span<const Continuation> advance(std::span<const std::vector<sample::Candidate>> candidates);

  std::uint32_t num_live() const { return static_cast<std::uint32_t>(live_.size()); }
  // The answer, best first; empty until the search is over.
  std::span<const Hypothesis> best() const { return best_; }

 private:
  // Tokens that hypotheses have in common are stored once, as nodes of a tree: a hypothesis is a path from its last
  // token back to its first.
  struct Node {
    TokenId token;
    float logprob;
    std::uint32_t before;  // node of the token before; kRoot: none
  };
  struct Path {
    std::uint32_t last = kRoot;  // node of its last token
    double sum = 0.0;
    double score = 0.0;  // once done
    flow::Finish finish = flow::Finish::kNone;
  };
  static constexpr std::uint32_t kRoot = ~0u;

  void finish(Path path, std::uint32_t num_tokens, flow::Finish finish);
  void end();
  // True if no hypothesis is live, or no live one can change the answer.
  bool is_over() const;
  double score(double sum, std::size_t num_tokens) const;

  const flow::BeamSearch search_;
  const std::uint32_t max_tokens_;
  const std::vector<TokenId> stop_tokens_;
  std::vector<Node> nodes_;
  std::vector<Path> live_;  // each of num_tokens_ tokens
  std::uint32_t num_tokens_ = 0;
  std::vector<Path> done_;        // at most num_best, best first
  std::vector<Hypothesis> best_;  // done_ with all tokens, once the search is over
  std::vector<Continuation> continuations_;
};

}  // namespace quire::engine
