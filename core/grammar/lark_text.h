// The text of a lark grammar, character by character: blanks and comments, words, numbers, literals, and where an error is.
// Owner   the parser of lark.cc, which is one.
// Thread  one at a time.
// Fails   false, once error_ says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "core/grammar/code_points.h"
#include "core/grammar/lark.h"

namespace quire::grammar {

inline bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class LarkText {
 protected:
  explicit LarkText(std::u32string text) : text_(std::move(text)) {}

  static bool is_word(char32_t c) { return is_ascii_letter(c) || is_digit(c) || c == '_'; }
  bool more() const { return at_ < text_.size(); }
  bool at(char32_t c) const { return more() && text_[at_] == c; }
  bool at(std::u32string_view s) const { return std::u32string_view(text_).substr(at_).starts_with(s); }
  bool take(char32_t c) { return at(c) && ++at_ > 0; }
  bool take(std::u32string_view s) {
    const bool there = at(s);
    if (there) at_ += s.size();
    return there;
  }
  void skip_blank();
  void skip_lines();
  void skip(std::uint32_t depth);
  std::string word();
  bool number(std::uint32_t& out);                         // what is beyond kMaxLarkCount is one more
  bool counts(std::uint32_t& least, std::uint32_t& most);  // of a repetition, behind its ~ or {; } is left
  bool literal_text(std::u32string& out);

  bool fail(std::size_t where, const std::string& what);
  Error error_at(std::size_t where, const std::string& what) const;

  std::u32string text_;
  std::size_t at_ = 0;
  std::optional<Error> error_;

 private:
  bool escape(std::u32string& out);
};

}  // namespace quire::grammar
