// Drafter by retrieval: it proposes the tokens that follow the text's last tokens in a datastore of other texts. The
// longest match of at most max_match tokens is used; its continuations, weighted by frequency, become a tree.
// Shape   a tree, most frequent paths first; a chain if width is 1. likely: the fraction of the occurrences that go on
//         so, multiplied along the path and corrected by Foresight. Of more than max_occurrences occurrences that many
//         are read, evenly spaced in the order of their continuations, so that a path's fraction of them is as of all.
// Owner   app makes it, the engine calls it. It owns the mapped file and stores each sequence's last draft.
// Thread  engine. A draft reads log2(places) · log2(max_match) · 2 places and at most max_occurrences · max_depth
//         tokens.
// Fails   construction: StartError with all problems at once.
// Source  REST (He et al. 2023), 3. The longest match is found by bisection, since every suffix of a match matches too;
//         the even spacing is ours.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "core/speculate/drafter.h"
#include "core/speculate/lookup/continuations.h"
#include "core/speculate/lookup/datastore.h"
#include "core/speculate/lookup/foresight.h"

namespace quire::speculate {

struct RestOptions {
  std::string datastore;                // file written by `quire build-datastore`
  std::uint32_t max_match = 16;         // tokens, 1..32
  std::uint32_t min_match = 2;          // tokens, 1..max_match; no draft from a shorter match
  std::uint32_t max_occurrences = 512;  // occurrences read, 1..65536
  float min_token_prob = 0.02f;         // least probability of a path, 0..1
  std::uint32_t width = 16;             // most children of a node; 1: a chain
};

class RestDrafter final : public Drafter {
 public:
  // `tokenizer_key`: of the model's tokenizer; the datastore must have the same.
  RestDrafter(const RestOptions& options, std::uint64_t tokenizer_key);

  std::string method() const override { return "rest"; }
  void observe(const ObservedStep&) override REQUIRES(engine_role) {}
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool /*ended*/) override REQUIRES(engine_role) { last_.erase(seq); }

  const Datastore& datastore() const { return store_; }

 private:
  struct Match {
    Datastore::Range range;
    std::uint32_t length = 0;
  };
  // count 0 if the longest match is shorter than min_match.
  Match longest(std::span<const TokenId> tokens) const;

  const RestOptions options_;
  const Datastore store_;
  Continuations continuations_;
  StepCalibration foresight_;
  std::unordered_map<SeqId, StepCalibration::Draft> last_;
};

}  // namespace quire::speculate
