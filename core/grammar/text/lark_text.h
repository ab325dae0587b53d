// The lexer of lark grammars: blanks and comments, words, numbers and literals.
// Owner   the parser of lark.cc, which derives from it.
// Thread  one at a time.
// Fails   functions return false after setting error_.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/grammar/rules/code_points.h"
#include "core/grammar/text/grammar_text.h"

namespace quire::grammar {

inline bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class LarkText : protected GrammarText {
 protected:
  using GrammarText::GrammarText;

  static bool is_word(char32_t c) { return is_ascii_letter(c) || is_digit(c) || c == '_'; }
  void skip_blank();
  void skip_lines();
  void skip(std::uint32_t depth);
  std::string word();
  bool counts(std::uint32_t& least, std::uint32_t& most);  // of a repetition, after its ~ or {; leaves the }
  bool literal_text(std::u32string& out);

 private:
  bool escape(std::u32string& out);
};

}  // namespace quire::grammar
