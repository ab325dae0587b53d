// Splits a template's source into tokens, with white space control applied (trim_blocks and lstrip_blocks are on).
// Shape   kText between tags; inside tags names, numbers, strings (unescaped) and operators up to the tag's end token.
//         kEnd is the last token.
// Thread  any.
// Fails   TemplateError: an unterminated tag or string, a character that begins no token, unbalanced brackets.
// Source  jinja2 3.1.6's lexer with the settings of transformers' apply_chat_template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/chat/value.h"

namespace quire::chat {

enum class TokenKind {
  kText,
  kBlockBegin,
  kBlockEnd,
  kOutputBegin,
  kOutputEnd,
  kName,
  kString,
  kNumber,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  std::string text;
  Value number;  // kNumber
  int line;
};

std::vector<Token> tokenize(std::string_view source);

}  // namespace quire::chat
