#include "core/grammar/text/lark_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/grammar/rules/code_points.h"

namespace quire::grammar {

// Skips blanks and comments up to the end of the line; a \ there joins it with the next line.
void LarkText::skip_blank() {
  while (more()) {
    const char32_t c = text_[at_];
    if (c == '#' || at(U"//")) {
      while (more() && text_[at_] != '\n') ++at_;
    } else if (c == '\\') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t' || text_[end] == '\r')) ++end;
      if (end >= text_.size() || text_[end] != '\n') return;
      at_ = end + 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

void LarkText::skip_lines() {
  for (skip_blank(); take('\n'); skip_blank()) {
  }
}

// Skips blanks within an expression. Outside of brackets the end of a line ends it, unless the next line begins with |.
void LarkText::skip(std::uint32_t depth) {
  if (depth > 0) return skip_lines();
  skip_blank();
  if (!at('\n')) return;
  const std::size_t end = at_;
  skip_lines();
  if (!at('|')) at_ = end;
}

std::string LarkText::word() {
  std::string word;
  for (; more() && is_word(text_[at_]); ++at_) word.push_back(static_cast<char>(text_[at_]));
  return word;
}

bool LarkText::literal_text(std::u32string& out) {
  const std::size_t begin = at_ - 1;
  while (!take('"')) {
    if (!more() || at('\n')) return fail(begin, "the literal is not closed");
    const char32_t c = text_[at_++];
    if (c != '\\') {
      out += c;
    } else if (!escape(out)) {
      return false;
    }
  }
  return true;
}

// Reads an escape, after its '\'. A \ that begins no known escape stands for itself.
bool LarkText::escape(std::u32string& out) {
  const std::size_t begin = at_ - 1;
  if (!more()) return fail(begin, "'\\' is the last character");
  const char32_t c = text_[at_++];
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    constexpr std::u32string_view kKnown = U"nrtf\\\"/";
    constexpr std::u32string_view kValues = U"\n\r\t\f\\\"/";
    const std::size_t known = kKnown.find(c);
    if (known == kKnown.npos) out += '\\';
    out += known == kKnown.npos ? c : kValues[known];
    return true;
  }
  std::optional<std::uint32_t> value = hex(digits);
  if (value && *value >= 0xD800 && *value <= 0xDBFF && take(U"\\u")) {
    const std::optional<std::uint32_t> low = hex(4);
    if (low && *low >= 0xDC00 && *low <= 0xDFFF) value = 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
  }
  if (!value || *value > kLastCodePoint || is_surrogate(*value)) return fail(begin, "this escape is not a character");
  out += *value;
  return true;
}

// Reads m or m..n; in braces also `m,`, `m,n` and `,n`.
bool LarkText::counts(std::uint32_t& least, std::uint32_t& most) {
  const bool in_braces = text_[at_ - 1] == '{';
  const bool parsed = number(least);
  most = least;
  if (!parsed) least = 0;
  skip_blank();
  if (in_braces && take(',')) {
    skip_blank();
    if (!number(most)) most = kUnbounded;
    skip_blank();
    return true;
  }
  if (!parsed) return false;
  if (!in_braces && take(U"..")) {
    skip_blank();
    return number(most);
  }
  return true;
}

}  // namespace quire::grammar
