// Text to token ids and back, as defined by the Hugging Face tokenizer.json of a model.
// Shape   encode: added tokens -> normalizer -> pre-tokenizer (words) -> byte-pair merges -> BOS/EOS template.
// Owner   shared_ptr<const Tokenizer>: loaded once, immutable, read by every request.
// Thread  any; every method is const.
// Fails   load(): StartError naming the invalid or unsupported part of the file. Nothing else fails.
// Source  the `tokenizers` package, whose ids and text this reproduces (tests/text_reference); Unicode 16.0.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/allowance.h"
#include "core/base/ids.h"

namespace quire::text {

class TokenDecoder;

class Tokenizer {
 public:
  // Arguments are the contents of whole files; empty: no such file. BOS and EOS come from tokenizer_config.json, else
  // from special_tokens_map.json; in the reverse order if tokenizer_config.json has no added_tokens_decoder. The tokens
  // of added_tokens_decoder, or without one those of added_tokens.json, are added if tokenizer.json lacks them. A BOS
  // or EOS that is not a token is logged and ignored.
  static std::shared_ptr<const Tokenizer> load(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                               std::string_view special_tokens_map_json = {},
                                               std::string_view added_tokens_json = {});

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Encodes any bytes: invalid UTF-8 is read as U+FFFD, one for each maximal subpart. Time and memory are linear in the
  // text; the caller limits its length. Special tokens spelled in the text become their ids.
  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const;

  // Limits that end encode() early: as soon as it has more than max_tokens ids, or when the allowance ends. It then
  // returns the beginning of the ids, in the first case more than max_tokens.
  struct EncodeLimits {
    std::size_t max_tokens = ~std::size_t{0};
    Allowance* allowance = nullptr;  // null: no time limit
  };
  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens, const EncodeLimits& limits) const;

  // A lower bound of the number of tokens of a text of that many bytes, from the longest token. 0 if there is no bound,
  // since text can vanish during encoding.
  std::size_t least_tokens(std::size_t text_bytes) const;

  // The text of a whole sequence; ids without a token are skipped.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  std::size_t vocab_size() const;                              // highest id + 1, added tokens included
  std::optional<TokenId> id_of(std::string_view token) const;  // spelled as in the vocabulary or the added tokens
  std::string_view piece(TokenId id) const;  // the vocabulary's spelling ("Ġthe", "<0x0A>"); empty: no such token
  bool is_special(TokenId id) const;

  // From tokenizer_config.json or special_tokens_map.json, see load().
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;

  const TokenDecoder& decoder() const;  // for Detokenizer

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace quire::text
