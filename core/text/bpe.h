// Byte-pair encoding: a vocabulary, and the merges that build its tokens from single characters.
// Shape   a word's symbols are merged pair by pair, lowest rank first, leftmost first among equal ranks.
// Thread  any; every method is const.
// Fails   constructor: StartError if the vocabulary contradicts itself.
// Source  Sennrich et al. 2016, as in the `tokenizers` package's BPE model. Merging with a heap of (rank, position) is
//         O(n log n) for a word of n characters. Two shortcuts are ours and change no id: a word that is a token and
//         that its own merges build gives that token; a long word is cut at places that no merge crosses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/allowance.h"
#include "core/base/ids.h"
#include "core/text/pair_table.h"

namespace quire::text {

struct BpeSpec {
  std::vector<std::pair<std::string, TokenId>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::optional<std::string> unknown_token;
  bool fuse_unknown = false;   // a run of unknown characters is one unknown token
  bool byte_fallback = false;  // an unknown character becomes its bytes <0xNN>, if the vocabulary has them
  bool ignore_merges = false;  // a word that is a token becomes that token, even if its merges build something else
};

class Bpe {
 public:
  explicit Bpe(BpeSpec spec);
  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;

  // Memory that encode() reuses from word to word.
  class Workspace;

  // Appends the ids of one word of valid UTF-8, shorter than 2 GiB.
  void encode(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const;

  std::optional<TokenId> id_of(std::string_view piece) const;
  std::string_view piece(TokenId id) const;            // empty if there is no such token
  std::size_t size() const { return pieces_.size(); }  // highest id + 1

  // True if every byte has a token, so that no text can vanish:
  bool has_all_bytes() const;            // as <0xNN>
  bool has_byte_level_alphabet() const;  // in GPT-2's byte alphabet

 private:
  static constexpr TokenId kMerged = -1;

  void load_vocabulary(std::vector<std::pair<std::string, TokenId>>&& vocabulary);
  void load_merges(const BpeSpec& spec);
  void find_cuts(const BpeSpec& spec);
  std::optional<TokenId> known_character(char32_t code) const;
  std::size_t cut_after(std::string_view word, std::size_t begin) const;
  void encode_uncut(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const;
  void merge_characters(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const;
  void load_symbols(std::string_view word, Workspace& workspace) const;
  bool add_bytes(std::string_view character, Workspace& workspace) const;
  std::optional<std::uint64_t> candidate(const Workspace& workspace, std::int32_t left) const;
  void merge(Workspace& workspace) const;

  std::vector<std::string> pieces_;                    // by id
  std::unordered_map<std::string_view, TokenId> ids_;  // views into pieces_
  std::vector<bool> built_by_merges_;                  // by id: merging the piece's characters gives exactly this id
  std::vector<TokenId> characters_;                    // by code point of the basic plane: its token id, or kMerged
  PairTable rank_of_;                                  // (left id, right id) -> rank
  std::vector<TokenId> merged_;                        // by rank: the token that the pair becomes
  PairTable joinable_;             // pairs (last character of a merge's left side, first of its right side)
  std::vector<TokenId> byte_ids_;  // 256 ids of <0xNN>, kMerged if missing; empty without byte fallback
  std::optional<TokenId> unknown_;
  bool fuse_unknown_, ignore_merges_;
};

class Bpe::Workspace {
 public:
  explicit Workspace(Allowance* limit = nullptr) : allowance(limit) {}  // if it ends, remaining merges are not made

 private:
  friend class Bpe;
  struct Symbol {
    TokenId id;  // kMerged: absorbed by its left neighbour
    std::int32_t previous, next;
  };
  void add(TokenId id) { symbols.push_back({id, 0, 0}); }

  Allowance* const allowance;
  std::vector<Symbol> symbols;
  // Candidate pairs to merge, as rank << 32 | position of the left symbol: the smallest is next.
  std::vector<std::uint64_t> first_candidates;  // of the initial neighbours, sorted
  std::vector<std::uint64_t> new_candidates;    // of pairs with a merged symbol, a heap
};

}  // namespace quire::text
