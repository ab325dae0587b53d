// The names of tokens in answers, and lengths of texts.
// Shape   a token's bytes need not be UTF-8: JsonWriter writes invalid bytes as U+FFFD. Lengths are in code points.
// Thread  any; pure functions.
// Source  vLLM's "token_id:17", for clients that need the token whatever its bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/text/tokenizer.h"

namespace quire::api {

std::string_view token_bytes(const text::Tokenizer& tokenizer, TokenId id);  // empty: no such token
// The token's bytes, or "token_id:17" if `as_id` is set or the token has no bytes.
std::string token_name(const text::Tokenizer& tokenizer, TokenId id, bool as_id);

std::size_t num_code_points(std::string_view utf8);

}  // namespace quire::api
