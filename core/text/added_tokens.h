// The tokens that are found in the text itself, before any merge: <|im_start|>, <s>, and what a fine-tuning added.
// Shape   split() covers the text with pieces, in order: tokens, and the text between them.
// Thread  any, once built.
// Source  the `tokenizers` package's AddedVocabulary: leftmost longest match, then single_word, lstrip, rstrip. A trie is
//         walked from every position where a token may begin; the longest token bounds a walk.
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
  std::string content;  // as the file spells it
  std::string match;    // what to look for: content, or what the normalizer makes of it
  bool special = false;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the blanks on its left along
  bool rstrip = false;       // and on its right
  bool normalized = false;   // looked for in normalized text; the others before
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Piece {
    std::string_view text;
    std::optional<TokenId> token;  // none: ordinary text
  };
  std::vector<Piece> split(std::string_view valid_text) const;

 private:
  struct Match {
    std::size_t end;
    std::size_t token;  // into tokens_
  };
  std::optional<Match> longest_at(std::string_view text, std::size_t begin) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> may_begin_{};
  PairTable edges_;                 // (node, byte) -> node; node 0 is the root
  std::vector<std::int32_t> ends_;  // by node: the token that ends there, or -1
};

}  // namespace quire::text
