// Suffix decoding: what followed the text's last tokens where they stood before, in the sequence itself and in past answers under
// the same root, weighted by how often. Of all match lengths and both texts the guess that promises the most tokens is taken.
//   a match of L tokens allows at most max_spec_factor · L + max_spec_offset guesses
//   chance of a node = product along its path of (occurrences that go on so) / (occurrences)
// Past answers are kept by root: a text said under one root is never proposed under another, and without a root a sequence
// knows itself alone and leaves nothing behind.
// Shape   a chain, or with `tree` the most probable frontier. likely: what chances as counted above turned out to be worth
//         (Foresight).
//         Memory: 52 bytes a token of a ring (TextIndex): each sequence has its own, a power of two up to max_own_tokens, until it
//         is released; all roots together keep max_cached_tokens. In a root the oldest tokens go first; where roots do not fit
//         beside each other, the one that was given an answer least recently goes as a whole.
// Owner   app makes it; the engine calls it. It borrows nothing between calls.
// Thread  engine. A new token costs a few table entries; a guess at most max_occurrences · max_tree_depth tokens compared for each
//         of four runs and two texts.
// Fails   making one: StartError, all problems at once.
// Source  SuffixDecoding (Oliaro et al. 2024), 4. Ours: hash chains instead of the suffix tree, so that only the newest
//         max_occurrences of a run are counted; forgetting by token; guesses that reach over the end of the sequence's own text
//         go on as if it repeats itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/speculate/drafter.h"
#include "core/speculate/lookup/continuations.h"
#include "core/speculate/lookup/foresight.h"
#include "core/speculate/lookup/text_index.h"

namespace quire::speculate {

struct SuffixOptions {
  std::uint32_t max_tree_depth = 24;           // longest match and longest guess, tokens, 1..64
  std::uint32_t max_cached_tokens = 1u << 20;  // of past answers, all roots together, 0 (none)..2^31
  std::uint32_t max_own_tokens = 1u << 18;     // of one sequence, 256..2^31
  std::uint32_t max_occurrences = 128;         // that are counted, the newest first, 1..4096
  float max_spec_factor = 1.0f;                // guesses for each token of the match, 0..64
  std::uint32_t max_spec_offset = 0;           // guesses for any match, 0..64
  float min_token_prob = 0.1f;                 // chance that a guess needs, 0..1
  std::uint32_t width = 1;                     // guesses at one token, at most; 1: a chain
};

class SuffixDrafter final : public Drafter {
 public:
  explicit SuffixDrafter(const SuffixOptions& options);

  std::string method() const override { return "suffix"; }
  void admit(const Admitted& sequence) override REQUIRES(engine_role);
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  // An answer that ended is kept under its root.
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);

  // Tokens that the roots' rings have room for, and how many roots there are.
  std::uint64_t cached_tokens() const { return cached_tokens_; }
  std::size_t num_roots() const { return roots_.size(); }
  std::uint64_t bytes() const;
  std::uint64_t num_probes() const;

 private:
  struct Sequence {
    std::optional<CacheRoot> root;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t num_tokens = 0;  // that `own` was given
    std::optional<TextIndex> own;
    Foresight::Draft last;
  };
  struct Past {
    TextIndex answers;
    std::uint64_t fed_at = 0;
  };
  struct Best {
    sample::TokenTree* tree;
    float score = 0.0f;
    std::uint32_t match = 0;
  };

  void learn(Sequence& sequence, std::span<const TokenId> tokens) const;
  void keep(const Sequence& sequence);
  void make_room(CacheRoot for_root);
  void look_in(const TextIndex& text, bool own, const Asked& asked, Best& best);
  void try_lengths(const TextIndex& text, bool own, std::uint32_t at_least, std::uint32_t up_to, const Asked& asked,
                   Best& best);

  const SuffixOptions options_;
  std::unordered_map<SeqId, Sequence> sequences_;
  std::map<CacheRoot, Past> roots_;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t num_fed_ = 0;
  std::vector<TextIndex::Occurrence> found_;  // scratch
  Continuations continuations_;
  Foresight foresight_;
  sample::TokenTree candidate_;
};

}  // namespace quire::speculate
