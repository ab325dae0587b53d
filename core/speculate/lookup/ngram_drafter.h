// Drafter by prompt lookup: it proposes the tokens that followed the newest earlier occurrence of the last few tokens
// in the same sequence. The longest run of prompt_lookup_min..max tokens that occurred before is used. If the text ends
// before the draft does, the draft continues as if the text repeats itself: after "a b a b a" comes "b a b a".
// Shape   a chain. likely: the product along the chain of (right + 1) / (tried + 2), the counts of how often a run of
//         that length predicted the next token in this text. Memory: at most 16 bytes per token and run length, until
//         release.
// Owner   app makes it, the engine calls it. It borrows nothing between calls.
// Thread  engine. A new token costs max - min + 1 table entries, however long the text.
// Fails   construction: StartError with all problems at once.
// Source  prompt lookup decoding (Saxena 2023). Ours: the hash index, the newest occurrence in place of the first, the
//         repeated end and the measured probabilities.
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

  // Bytes of all sequences' tables, and slots that they have read.
  std::uint64_t bytes() const;
  std::uint64_t num_probes() const;

 private:
  // One sequence's runs. A run is indexed when the token after it is known, so every occurrence has a continuation.
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
  void draft(const Index& index, const Asked& asked, sample::TokenTree& tree) const;

  const NgramOptions options_;
  std::unordered_map<SeqId, Index> sequences_;
};

}  // namespace quire::speculate
