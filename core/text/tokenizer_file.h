// Reader of tokenizer.json and tokenizer_config.json: turns them into the parts of a Tokenizer.
// Shape   each component of the file ("normalizer", ...) becomes its steps; nested Sequences are flattened.
// Thread  any; called at start.
// Fails   StartError: bad JSON, a missing field or one of the wrong kind, or an unsupported feature (named).
// Source  the `tokenizers` package's file format, version 1.0. truncation and padding are ignored on purpose.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/token_decoder.h"

namespace quire::text {

struct TokenizerFile {
  std::vector<AddedToken> added_tokens;  // `match` is still equal to `content`
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeSpec model;
  DecoderSteps decoder;
  std::vector<TokenId> before, after;  // special tokens before and after a text
};
TokenizerFile read_tokenizer_file(std::string_view json);

struct TokenizerConfig {
  std::optional<std::string> bos_token, eos_token;  // nullopt for missing and empty ones
  // added_tokens_decoder, if present. A file without it has the older layout, in which special_tokens_map.json and
  // added_tokens.json take precedence.
  std::optional<std::vector<AddedToken>> added_tokens;
};
// Reads special_tokens_map.json too, which has the same keys. Empty `json`: no such file.
TokenizerConfig read_tokenizer_config(std::string_view json, const char* file = "tokenizer_config.json");

// Reads added_tokens.json: names and ids. Entries without a valid token id are skipped. Empty `json`: no such file.
std::vector<AddedToken> read_added_tokens(std::string_view json);

}  // namespace quire::text
