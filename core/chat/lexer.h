// A template's source as tokens, white space control already applied (trim_blocks and lstrip_blocks are on).
// Shape   kText between tags; inside them names, numbers, strings (unescaped) and operators, ended by kEnd of the tag.
// Thread  any.
// Fails   TemplateError: a tag or string without end, a character no token begins with, unbalanced brackets.
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
