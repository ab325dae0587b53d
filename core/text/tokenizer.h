// Text to token ids and back, as the Hugging Face tokenizer.json beside a model's weights defines it.
// Shape   encode: added tokens -> normalizer -> pre-tokenizer (words) -> byte-pair merges -> BOS/EOS template.
// Owner   shared_ptr<const Tokenizer>: loaded once, immutable, read by every request.
// Thread  any; every method is const.
// Fails   load(): StartError naming the part of the file that is wrong, or that quire does not know. Nothing else fails.
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
  // Whole files; empty: it is not there. BOS and EOS are tokenizer_config.json's, else special_tokens_map.json's; the other way
  // round where the first has no added_tokens_decoder. This one's tokens, else those of added_tokens.json, are added to
  // tokenizer.json's where that lacks them. A BOS or EOS that is no token is logged and ignored.
  static std::shared_ptr<const Tokenizer> load(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                               std::string_view special_tokens_map_json = {},
                                               std::string_view added_tokens_json = {});

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Any bytes: what is not UTF-8 is read as U+FFFD, one for each maximal subpart. Time and memory are linear in the
  // text; how long it may be is the caller's to limit. Special tokens spelled in the text become their ids.
  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const;

  // The same, ended early: once there are more than max_tokens, or once the allowance ends. Then what it gives is a
  // beginning, of more than max_tokens ids in the first case.
  struct EncodeLimits {
    std::size_t max_tokens = ~std::size_t{0};
    Allowance* allowance = nullptr;  // null: as long as it takes
  };
  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens, const EncodeLimits& limits) const;

  // So many bytes of a text have at least this many tokens: for the longest token there is. 0 where that is not known,
  // because text can vanish on its way to tokens.
  std::size_t least_tokens(std::size_t text_bytes) const;

  // The text of a whole sequence; ids without a token are passed over.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  std::size_t vocab_size() const;                              // highest id + 1, added tokens included
  std::optional<TokenId> id_of(std::string_view token) const;  // spelled as in the vocabulary or the added tokens
  std::string_view piece(TokenId id) const;  // the vocabulary's own spelling ("Ġthe", "<0x0A>"); empty: no such token
  bool is_special(TokenId id) const;

  // As those two files name them.
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;

  const TokenDecoder& decoder() const;  // for Detokenizer

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace quire::text
