// tokenizer.json and tokenizer_config.json, read into the parts that do the work.
// Shape   each component of the file ("normalizer", ...) becomes the steps it is made of, Sequences flattened.
// Thread  any; called while starting.
// Fails   StartError: not JSON, a field is missing or of the wrong kind, or something quire does not know (named).
// Source  the `tokenizers` package's file format, version 1.0. truncation and padding are left out on purpose.
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
  std::vector<AddedToken> added_tokens;  // match is still the content
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeSpec model;
  DecoderSteps decoder;
  std::vector<TokenId> before, after;  // what special tokens stand around a text
};
TokenizerFile read_tokenizer_file(std::string_view json);

struct TokenizerConfig {
  std::optional<std::string> bos_token, eos_token;  // none, and empty ones, are absent
  // added_tokens_decoder, where it is there. A file without it is an older one, to which special_tokens_map.json and
  // added_tokens.json are later words.
  std::optional<std::vector<AddedToken>> added_tokens;
};
// Likewise of special_tokens_map.json, which has the same keys. Empty: there is none.
TokenizerConfig read_tokenizer_config(std::string_view json, const char* file = "tokenizer_config.json");

// added_tokens.json: names and numbers; what has no token's number is none. Empty: there is no such file.
std::vector<AddedToken> read_added_tokens(std::string_view json);

}  // namespace quire::text
