// Finds added tokens in the text itself, before any merge: <|im_start|>, <s>, and tokens that a fine-tuning added.
// Shape   split() returns pieces in order that cover the text: tokens, and the text between them.
// Thread  any, once built.
// Source  the `tokenizers` package's AddedVocabulary: leftmost longest match, then single_word, lstrip, rstrip. A trie
//         is searched from every position at which a token may begin; the longest token bounds a search.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/text/pair_table.h"

namespace quire::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;  // as in the file
  std::string match;    // the text to find: content, or content after the normalizer
  bool special = false;
  bool single_word = false;  // matches only if no word character is adjacent
  bool lstrip = false;       // includes the white space on its left
  bool rstrip = false;       // includes the white space on its right
  bool normalized = false;   // found in normalized text; all others before normalization
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Piece {
    std::string_view text;
    std::optional<TokenId> token;  // nullopt: ordinary text
  };
  std::vector<Piece> split(std::string_view valid_text) const;

 private:
  struct Match {
    std::size_t end;
    std::size_t token;  // index in tokens_
  };
  std::optional<Match> longest_at(std::string_view text, std::size_t begin) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> may_begin_{};
  PairTable edges_;                 // (node, byte) -> node; node 0 is the root
  std::vector<std::int32_t> ends_;  // by node: the token that ends there, or -1
};

}  // namespace quire::text
