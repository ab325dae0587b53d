// What each token adds to the answer's text, worked out for the whole vocabulary when it is loaded.
// Shape   a token is text, or bytes that become text only together with their neighbours.
// Thread  any; every method is const.
// Fails   add(): StartError for an order of steps that would need the whole answer at once.
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
    std::string literal{};  // what the pattern is; empty: a regular expression
  };
  struct Strip {
    char32_t content;
    std::size_t start, stop;  // at most so many at either end
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
  std::optional<Replace> replace_answer_;  // a literal
  bool empty_ = true;
};

class TokenDecoder {
 public:
  struct Token {
    std::string spelling;  // empty: no such token
    bool skip = false;     // a special token, passed over on request
  };
  TokenDecoder(const DecoderSteps& steps, const std::vector<Token>& tokens);

  // The text of a whole answer. (Detokenizer gives it in parts.)
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  enum class Kind : std::uint8_t {
    kMissing,       // no token has this id
    kText,          // UTF-8 of its own
    kFallbackByte,  // one byte of a character spelled in bytes
    kLevelBytes,    // byte-level: any part of the answer's bytes
  };
  struct Piece {
    Kind kind = Kind::kMissing;
    bool skip = false;
    std::string bytes;
  };
  const Piece& piece(TokenId id) const;
  // As the answer's first token. The id has a token.
  std::string_view first_bytes(TokenId id) const;

  std::string_view separator() const { return separator_; }  // between tokens
  // The answer begins with at most strip_count() copies of this too many.
  std::string_view strip_content() const { return strip_content_; }
  std::size_t strip_count() const { return strip_count_; }
  // Of the answer's text, left to right, this becomes that; null: nothing does.
  struct Rewrite {
    std::string from, to;
  };
  const Rewrite* rewrite() const { return rewrite_ ? &*rewrite_ : nullptr; }

 private:
  Piece decoded(const DecoderSteps& steps, const Token& token, bool first) const;

  std::vector<Piece> pieces_;        // by id
  std::vector<Piece> first_pieces_;  // by id, where the first token is read differently; else empty
  std::string separator_;
  std::string strip_content_;
  std::size_t strip_count_ = 0;
  std::optional<Rewrite> rewrite_;
};

}  // namespace quire::text
