// Prompt lookup: what stood behind the newest earlier occurrence of the last few tokens, in this sequence's own text. The longest
// run of prompt_lookup_min..max tokens that stood there before decides. Where the text ends before the guesses do, they go on as
// they would if it repeats itself: "a b a b a" is followed by "b a b a", whatever it takes.
// Shape   a chain. likely: how often a run of that length foretold the next token in this text so far, (right + 1) / (tried + 2),
//         multiplied along the chain. At most 16 bytes a token for each length of run, and nothing once a sequence is released.
// Owner   app makes it; the engine calls it. It borrows nothing between calls.
// Thread  engine. A new token costs max - min + 1 table entries, whatever the length of the text.
// Fails   making one: StartError, all problems at once.
// Source  prompt lookup decoding (Saxena 2023). The hash index, the newest occurrence instead of the first, the repeated end and
//         the measured chances are ours.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/speculate/drafter.h"
#include "core/speculate/lookup/ngram_table.h"

namespace quire::speculate {

struct NgramOptions {
  std::uint32_t prompt_lookup_min = 2;  // tokens, 1..32
  std::uint32_t prompt_lookup_max = 4;  // tokens, prompt_lookup_min..32
};

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const NgramOptions& options);

  std::string method() const override { return "ngram"; }
  void admit(const Admitted& sequence) override REQUIRES(engine_role);
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);

  // Of all sequences: their tables, and what they cost so far.
  std::uint64_t bytes() const;
  std::uint64_t num_probes() const;

 private:
  // One sequence's runs, indexed up to the token that follows them: so a run always has something behind it.
  struct Index {
    struct Foretold {
      std::uint32_t tried = 0;
      std::uint32_t right = 0;
    };
    std::vector<NgramTable> tables;  // by length
    std::vector<Foretold> foretold;  // by length
    std::uint32_t num_tokens = 0;
  };

  Index& index_of(SeqId seq);
  void learn(Index& index, std::span<const TokenId> tokens) const;
  void guess(const Index& index, const Asked& asked, sample::TokenTree& tree) const;

  const NgramOptions options_;
  std::unordered_map<SeqId, Index> sequences_;
};

}  // namespace quire::speculate
