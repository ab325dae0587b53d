#include "api/generation/token_text.h"

#include <algorithm>

#include "core/text/token_decoder.h"

namespace quire::api {

std::string_view token_bytes(const text::Tokenizer& tokenizer, TokenId id) {
  return tokenizer.decoder().piece(id).bytes;
}

std::string token_name(const text::Tokenizer& tokenizer, TokenId id, bool as_id) {
  const std::string_view bytes = token_bytes(tokenizer, id);
  return as_id || bytes.empty() ? "token_id:" + std::to_string(id) : std::string(bytes);
}

std::size_t num_code_points(std::string_view utf8) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), begins));
}

}  // namespace quire::api
