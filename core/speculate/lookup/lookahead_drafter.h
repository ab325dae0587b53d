// Drafter by lookahead decoding: a pool of n-grams, the newest ones of each first token, and a Jacobi window that adds
// n-grams which no text contained yet. The pool learns from the sequence's own text and from the window's lookahead
// nodes. Candidates are the n-grams of the last token, each extended n-gram by n-gram as far as the pool goes. A draft
// is the tree of candidates, followed by the window's nodes. Without a window only n-grams of the text are drafted, and
// steps are as short as the ngram drafter's.
// Shape   paths of at most kLongest tokens; likely: the fraction of the pooled n-grams that begin so, each counted
//         once, corrected by Foresight. Then as many window columns as fit in half of the draft plus the nodes that
//         candidates leave; they have likely 0, so an adaptive budget cuts them all.
//         Memory: ngrams_per_token · (ngram_size - 1) · 4 bytes and about 48 more per distinct token of a sequence's
//         text or window, until its release; a window adds every distinct token that the model ever predicts in it.
// Owner   app makes it, the engine calls it. It borrows nothing between calls.
// Thread  engine. A new token, or a column, costs ngrams_per_token · ngram_size token comparisons, however long the
//         text.
// Fails   construction: StartError with all problems at once.
// Source  Lookahead decoding (Fu et al. 2024), 3: window, pool, verification; the prompt seeds the pool.
//         Ours: extending a candidate by further n-grams.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/speculate/drafter.h"
#include "core/speculate/lookup/continuations.h"
#include "core/speculate/lookup/foresight.h"
#include "core/speculate/lookup/jacobi_window.h"

namespace quire::speculate {

struct LookaheadOptions {
  std::uint32_t window = 0;      // columns of the window, 0..32; 0: pool only. window · (ngram_size - 1) <= kMostRows
  std::uint32_t ngram_size = 5;  // tokens, 2..8, the first token included
  std::uint32_t ngrams_per_token = 7;  // n-grams kept for each first token, 1..32

  static constexpr std::uint32_t kMostRows = sample::TokenTree::kMaxNodes / 2;
};

class LookaheadDrafter final : public Drafter {
 public:
  static constexpr std::uint32_t kLongest = 8;

  explicit LookaheadDrafter(const LookaheadOptions& options);

  std::string method() const override { return "lookahead"; }
  void admit(const Admitted& sequence) override REQUIRES(engine_role);
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);

  std::uint64_t bytes() const;  // of all pools' n-grams and windows

 private:
  struct Kept {
    std::uint32_t first = 0;  // index in Pool::ngrams of its n-grams, newest first
    std::uint32_t count = 0;
  };
  struct Pool {
    std::unordered_map<TokenId, Kept> by_token;
    std::vector<TokenId> ngrams;  // [distinct first tokens, ngrams_per_token, ngram_size - 1]: tokens after the first
    std::uint64_t num_tokens = 0;
  };
  struct Known {
    Pool pool;
    JacobiWindow window;
    StepCalibration::Draft last;
    // Tokens at the last propose(); the last of them is the window's root.
    std::size_t num_asked = 0;
  };

  void learn(Pool& pool, std::span<const TokenId> tokens) const;
  void put(Pool& pool, std::span<const TokenId> ngram) const;
  void observe_window(Known& known, const Observed& observed) const;
  // Fills paths_ with the candidates after `token` and returns their number.
  std::uint32_t look_ahead(const Pool& pool, TokenId token);

  const LookaheadOptions options_;
  const std::uint32_t length_;  // ngram_size - 1: the stored tokens of an n-gram
  std::unordered_map<SeqId, Known> sequences_;
  std::vector<TokenId> paths_;  // [ngrams_per_token, kLongest]
  Continuations continuations_;
  StepCalibration foresight_;
};

}  // namespace quire::speculate
