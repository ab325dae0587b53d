// The text or bytes of each token of the vocabulary, computed when the tokenizer is loaded.
// Shape   a token is text, or bytes that become text only together with their neighbours.
// Thread  any; every method is const.
// Fails   DecoderSteps::add(): StartError for an order of steps that would need the whole answer at once.
// Source  the `tokenizers` package's decoders of the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/text/pattern.h"

namespace quire::text {

// tokenizer.json's decoder, in its order. Without any step, tokens are joined by blanks.
class DecoderSteps {
 public:
  struct Replace {
    Pattern pattern;
    std::string content;
    std::string literal{};  // the pattern if it is a literal; empty: a regular expression
  };
  struct Strip {
    char32_t content;
    std::size_t start, stop;  // at most so many at the start and at the end
  };
  struct Metaspace {
    char32_t replacement;
    bool drop_from_first;  // the answer's first token loses its replacement characters
  };
  enum class Bytes { kByteFallback, kByteLevel };
  struct Fuse {};
  using Step = std::variant<Replace, Strip, Metaspace, Bytes, Fuse>;

  void add(Step step);
  bool empty() const { return empty_; }

 private:
  friend class TokenDecoder;
  std::vector<Step> per_token_;  // Replace, Strip, Metaspace
  std::optional<Bytes> bytes_;
  bool fused_ = false;
  std::optional<Strip> strip_answer_;
  std::optional<Replace> replace_answer_;  // its pattern is a literal
  bool empty_ = true;
};

class TokenDecoder {
 public:
  struct Token {
    std::string spelling;  // empty: no such token
    bool skip = false;     // a special token, skipped on request
  };
  TokenDecoder(const DecoderSteps& steps, const std::vector<Token>& tokens);

  // The text of a whole answer. Detokenizer returns the same text in parts.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  enum class Kind : std::uint8_t {
    kMissing,       // no token has this id
    kText,          // complete UTF-8 text
    kFallbackByte,  // one byte of a character, from a token <0xNN>
    kLevelBytes,    // byte-level: bytes that may begin or end inside a character
  };
  struct Piece {
    Kind kind = Kind::kMissing;
    bool skip = false;
    std::string bytes;
  };
  const Piece& piece(TokenId id) const;
  // The token's bytes if it is the answer's first. Requires an id that has a token.
  std::string_view first_bytes(TokenId id) const;

  std::string_view separator() const { return separator_; }  // between tokens
  // At most strip_count() copies of strip_content() are removed from the answer's start.
  std::string_view strip_content() const { return strip_content_; }
  std::size_t strip_count() const { return strip_count_; }
  // Replaces `from` by `to` in the answer's text, left to right; null: no replacement.
  struct Rewrite {
    std::string from, to;
  };
  const Rewrite* rewrite() const { return rewrite_ ? &*rewrite_ : nullptr; }

 private:
  Piece decoded(const DecoderSteps& steps, const Token& token, bool first) const;

  std::vector<Piece> pieces_;        // by id
  std::vector<Piece> first_pieces_;  // by id, if some tokens differ as the first token; else empty
  std::string separator_;
  std::string strip_content_;
  std::size_t strip_count_ = 0;
  std::optional<Rewrite> rewrite_;
};

}  // namespace quire::text
