// Retrieval: what follows the text's last tokens in a datastore of other texts. The longest match of at most max_match tokens that
// stands there decides; its continuations, weighted by how often they occur, become a tree, the most frequent paths first.
// Shape   a tree, or a chain with `tree` off. likely: what the part of the occurrences that go on so, multiplied along the path,
//         turned out to be worth (Foresight). Of more
//         than max_occurrences of them so many are looked at, evenly spaced in the order of what follows them, so that a path has
//         the same share of those as of all.
// Owner   app makes it; the engine calls it. It keeps the file mapped, and of a sequence its last draft.
// Thread  engine. A guess is log2(places) · log2(max_match) · 2 places looked at, and at most max_occurrences · max_depth tokens.
// Fails   making one: StartError, all problems at once.
// Source  REST (He et al. 2023), 3. The longest match is found by halving, since what a match ends with is a match, too; the even
//         spacing is ours.
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
  std::string datastore;                // the file; `quire build-datastore` makes one
  std::uint32_t max_match = 16;         // tokens, 1..32
  std::uint32_t min_match = 2;          // tokens, 1..max_match: shorter ones guess nothing
  std::uint32_t max_occurrences = 512;  // that are counted, 1..65536
  float min_token_prob = 0.02f;         // chance that a guess needs, 0..1
  std::uint32_t width = 16;             // guesses at one token, at most; 1: a chain
};

class RestDrafter final : public Drafter {
 public:
  // `tokenizer_key`: of the tokenizer that the model has, as the datastore was built with it.
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
  // None where the longest is too short.
  Match longest(std::span<const TokenId> tokens) const;

  const RestOptions options_;
  const Datastore store_;
  Continuations continuations_;
  Foresight foresight_;
  std::unordered_map<SeqId, Foresight::Draft> last_;
};

}  // namespace quire::speculate
