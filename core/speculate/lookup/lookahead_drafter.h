// Lookahead: a pool of n-grams, by first token, each token's newest ones, and a window of guesses that feeds it. Into the pool goes
// what the sequence's own text says, and what the window finds: guesses that the target itself improves in every step (Jacobi
// iteration), so that it has n-grams that no text said yet. Those of the last token are the candidates; each goes on, n-gram by
// n-gram, as far as the pool knows. A draft is the candidates' tree, and behind them the window's nodes, whose rows say how it goes
// on. Without a window nothing is ever guessed that the text did not say, and steps are as short as those of the ngram drafter.
// Shape   a tree of paths of at most kLongest tokens; likely: what the part of the pooled n-grams
//         that begin so, each counted once, turned out to be worth (Foresight). Then
//         as many columns of the window as leave candidates half of the draft or do not need: nodes that promise nothing (likely
//         0), so a budget that goes by promises cuts them all.
//         guesses · (ngram_size - 1) · 4 bytes and some 48 more for each different token of a sequence or of its window's, until it
//         is released; those of the window grow with the tokens that the model ever expects there.
// Owner   app makes it; the engine calls it. It borrows nothing between calls.
// Thread  engine. A new token costs guesses · ngram_size tokens compared, whatever the length of the text; so does a column.
// Fails   making one: StartError, all problems at once.
// Source  Lookahead decoding (Fu et al. 2024), 3: window, pool, verification; the pool is seeded by the prompt. Following n-grams
//         on is ours.
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
  std::uint32_t window = 0;  // columns of guesses, 0..32; 0: the pool alone. window · (ngram_size - 1) <= kMostRows
  std::uint32_t ngram_size = 5;  // tokens, the one that it is found by included, 2..8
  std::uint32_t guesses = 7;     // n-grams kept for each token, 1..32

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
    std::uint32_t first = 0;  // its n-grams stand in Pool::ngrams from here on, the newest first
    std::uint32_t count = 0;
  };
  struct Pool {
    std::unordered_map<TokenId, Kept> by_token;
    std::vector<TokenId> ngrams;  // [tokens · guesses · (ngram_size - 1)]: what follows the first token
    std::uint64_t num_tokens = 0;
  };
  struct Known {
    Pool pool;
    JacobiWindow window;
    Foresight::Draft last;
    std::size_t num_asked =
        0;  // tokens that there were when guesses were wanted last; the last of them is the window's root
  };

  void learn(Pool& pool, std::span<const TokenId> tokens) const;
  void put(Pool& pool, std::span<const TokenId> ngram) const;
  void hear_window(Known& known, const Observed& observed) const;
  // Fills paths_ with the guesses behind the token; gives how many there are.
  std::uint32_t look_ahead(const Pool& pool, TokenId token);

  const LookaheadOptions options_;
  const std::uint32_t length_;  // of what is kept of an n-gram
  std::unordered_map<SeqId, Known> sequences_;
  std::vector<TokenId> paths_;  // [guesses, kLongest]
  Continuations continuations_;
  Foresight foresight_;
};

}  // namespace quire::speculate
