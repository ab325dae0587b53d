// Drafter by suffix decoding: it proposes the tokens that followed earlier occurrences of the text's last tokens, in
// the sequence itself and in past answers of its cache namespace, weighted by frequency. Of all match lengths and both
// texts the draft with the most expected tokens is used. A match of L tokens drafts at most max_spec_factor · L +
// max_spec_offset tokens.
//   P(node) = product along its path of (occurrences that go on so) / (occurrences)
// Past answers are stored by cache namespace and never proposed in another one. A sequence without a cache namespace
// uses its own text only, and its answer is not stored.
// Shape   a chain, or with width > 1 a tree of the most probable paths. likely: P(node) corrected by Foresight.
//         Memory: 52 bytes per token of a ring (TextIndex). Each sequence has a ring, until its release, of a power of
//         two of tokens, up to max_own_tokens rounded up to one; the namespaces' rings have max_cached_tokens together.
//         A full ring drops its oldest tokens; if the namespaces exceed the sum, the one whose last answer is oldest is
//         evicted as a whole.
// Owner   app makes it, the engine calls it. It borrows nothing between calls.
// Thread  engine. A new token costs a few table entries; a draft at most max_occurrences · max_tree_depth token
//         comparisons for each of four run lengths and two texts.
// Fails   construction: StartError with all problems at once.
// Source  SuffixDecoding (Oliaro et al. 2024), 4. Ours: hash chains in place of the suffix tree, so that only a run's
//         newest max_occurrences are counted; dropping single tokens; a draft that reaches the end of the sequence's
//         own text goes on as if the text repeats itself.
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
  std::uint32_t max_tree_depth = 24;           // tokens of the longest match and the longest draft, 1..64
  std::uint32_t max_cached_tokens = 1u << 20;  // of past answers, all namespaces together, 0 (none)..2^31
  std::uint32_t max_own_tokens = 1u << 18;     // of one sequence, 256..2^31
  std::uint32_t max_occurrences = 128;         // occurrences counted, newest first, 1..4096
  float max_spec_factor = 1.0f;                // draft tokens per token of the match, 0..64
  std::uint32_t max_spec_offset = 0;           // draft tokens for any match, 0..64
  float min_token_prob = 0.1f;                 // least probability of a path, 0..1
  std::uint32_t width = 1;                     // most children of a node; 1: a chain
};

class SuffixDrafter final : public Drafter {
 public:
  explicit SuffixDrafter(const SuffixOptions& options);

  std::string method() const override { return "suffix"; }
  void admit(const Admitted& sequence) override REQUIRES(engine_role);
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  // Stores the answer of an ended sequence in its cache namespace.
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);

  // Capacity in tokens of the namespaces' rings, and the number of namespaces.
  std::uint64_t cached_tokens() const { return cached_tokens_; }
  std::size_t num_namespaces() const { return namespaces_.size(); }
  std::uint64_t bytes() const;
  std::uint64_t num_probes() const;

 private:
  struct Sequence {
    std::optional<CacheNamespace> cache_namespace;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t num_tokens = 0;  // appended to `own` so far
    std::optional<TextIndex> own;
    StepCalibration::Draft last;
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
  void make_room(CacheNamespace for_namespace);
  void look_in(const TextIndex& text, bool own, const Asked& asked, Best& best);
  void try_lengths(const TextIndex& text, bool own, std::uint32_t at_least, std::uint32_t up_to, const Asked& asked,
                   Best& best);

  const SuffixOptions options_;
  std::unordered_map<SeqId, Sequence> sequences_;
  std::map<CacheNamespace, Past> namespaces_;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t num_fed_ = 0;
  std::vector<TextIndex::Occurrence> found_;  // scratch
  Continuations continuations_;
  StepCalibration foresight_;
  sample::TokenTree candidate_;
};

}  // namespace quire::speculate
