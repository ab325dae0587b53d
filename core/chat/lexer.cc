#include "core/chat/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "core/chat/python_text.h"
#include "core/chat/template_error.h"
#include "core/text/unicode/utf8.h"

namespace quire::chat {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Turns "\r\n" and "\r" into "\n"; drop_last removes one newline at the very end.
std::string with_plain_newlines(std::string_view source, bool drop_last) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  if (drop_last && !text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(with_plain_newlines(source, true)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) data();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool follows(std::string_view what, std::size_t at) const { return text_.compare(at, what.size(), what) == 0; }
  bool follows(std::string_view what) const { return follows(what, at_); }

  void add(TokenKind kind, std::string text, Value number = {}) {
    tokens_.push_back(Token{kind, std::move(text), std::move(number), line_});
  }

  void advance_to(std::size_t at) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    if (at > at_) line_starting_ = text_[at - 1] == '\n';
    at_ = at;
  }

  std::size_t past_space(std::size_t at) const {
    while (at < text_.size()) {
      std::size_t next = at;
      if (!is_python_space(text::next_code_point(text_, next))) break;
      at = next;
    }
    return at;
  }

  std::size_t next_tag() const {
    for (std::size_t at = at_; (at = text_.find('{', at)) != std::string::npos; ++at) {
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#')) return at;
    }
    return std::string::npos;
  }

  // The text up to the tag at `tag` with the given sign, after white space control.
  std::string_view left_of(std::size_t tag, char sign, bool is_output) const {
    const std::string_view text = std::string_view(text_).substr(at_, tag - at_);
    if (sign == '-') return strip(text, nullptr, false, true);
    if (sign == '+' || is_output) return text;
    const std::size_t line = text.rfind('\n') + 1;
    if (line == 0 && !line_starting_) return text;
    return strip(text.substr(line), nullptr, true, true).empty() ? text.substr(0, line) : text;
  }

  // The end of the tag at `tag` if it is {% word %} with any signs; npos if it is another tag.
  std::size_t end_of_plain_tag(std::size_t tag, std::string_view word, bool trims_newline) const {
    std::size_t at = tag + 2;
    if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) ++at;
    at = past_space(at);
    if (!follows(word, at)) return std::string::npos;
    at = past_space(at + word.size());
    if (follows("-%}", at)) return past_space(at + 3);
    if (trims_newline && follows("+%}", at)) return at + 3;
    if (!follows("%}", at)) return std::string::npos;
    return at + 2 + (trims_newline && follows("\n", at + 2) ? 1 : 0);
  }

  char sign_at(std::size_t at) const {
    return at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : 0;
  }

  void data() {
    const std::size_t tag = next_tag();
    if (tag == std::string::npos) {
      add(TokenKind::kText, text_.substr(at_));
      return advance_to(text_.size());
    }
    const char kind = text_[tag + 1], sign = sign_at(tag + 2);
    const std::string_view before = left_of(tag, sign, kind == '{');
    if (!before.empty()) add(TokenKind::kText, std::string(before));
    const std::size_t raw = kind == '%' ? end_of_plain_tag(tag, "raw", false) : std::string::npos;
    if (raw != std::string::npos) return raw_block(raw);
    advance_to(tag + 2 + (sign != 0 ? 1 : 0));
    if (kind == '#') return comment();
    add(kind == '{' ? TokenKind::kOutputBegin : TokenKind::kBlockBegin, "");
    inside(kind == '{');
  }

  void raw_block(std::size_t begin) {
    advance_to(begin);
    for (std::size_t tag = at_; (tag = text_.find("{%", tag)) != std::string::npos; ++tag) {
      const std::size_t end = end_of_plain_tag(tag, "endraw", true);
      if (end == std::string::npos) continue;
      const std::string_view content = left_of(tag, sign_at(tag + 2), false);
      if (!content.empty()) add(TokenKind::kText, std::string(content));
      return advance_to(end);
    }
    fail("{% raw %} without {% endraw %}", line_);
  }

  void comment() {
    const std::size_t end = text_.find("#}", at_);
    if (at_ >= text_.size()) return;  // jinja2 treats this as the end of the template
    if (end == std::string::npos) fail("a comment without #}", line_);
    const char sign = end > at_ ? text_[end - 1] : 0;
    if (sign == '-') return advance_to(past_space(end + 2));
    advance_to(end + 2 + (sign != '+' && follows("\n", end + 2) ? 1 : 0));
  }

  void inside(bool is_output) {
    std::string open;
    while (true) {
      advance_to(past_space(at_));
      if (at_ >= text_.size()) fail(is_output ? "{{ without }}" : "{% without %}", line_);
      if (open.empty() && end_of_tag(is_output)) return;
      const char c = text_[at_];
      if (is_digit(c)) {
        number();
      } else if (is_name_part(c)) {
        std::size_t end = at_;
        while (end < text_.size() && is_name_part(text_[end])) ++end;
        add(TokenKind::kName, text_.substr(at_, end - at_));
        advance_to(end);
      } else if (c == '"' || c == '\'') {
        string(c);
      } else {
        operation(open);
      }
    }
  }

  bool end_of_tag(bool is_output) {
    const std::string_view end = is_output ? "}}" : "%}";
    const char sign = sign_at(at_);
    if (sign == '+' && is_output) return false;
    if (!follows(end, at_ + (sign != 0 ? 1 : 0))) return false;
    add(is_output ? TokenKind::kOutputEnd : TokenKind::kBlockEnd, "");
    std::size_t at = at_ + end.size() + (sign != 0 ? 1 : 0);
    if (sign == '-') at = past_space(at);
    if (sign == 0 && !is_output && follows("\n", at)) ++at;
    advance_to(at);
    return true;
  }

  void number() {
    std::size_t end = at_;
    const auto skip_digits = [&] {
      while (end < text_.size() && is_digit(text_[end])) ++end;
    };
    skip_digits();
    bool is_float = false;
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';
    const auto digit_at = [&](std::size_t at) { return at < text_.size() && is_digit(text_[at]); };
    if (!after_dot && follows(".", end) && digit_at(end + 1)) is_float = true, ++end, skip_digits();
    if (!after_dot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const std::size_t first = end + 1 + (sign_at(end + 1) != 0 ? 1 : 0);
      if (digit_at(first)) is_float = true, end = first, skip_digits();
    }
    const std::string digits = text_.substr(at_, end - at_);
    if (end < text_.size() && is_name_part(text_[end]))
      fail("the number " + digits + text_[end] + "... is not supported", line_);
    if (is_float) {
      double value = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
      add(TokenKind::kNumber, digits, Value(value));
    } else {
      std::int64_t value = 0;
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      const bool leading_zero = digits.size() > 1 && digits[0] == '0' && value != 0;
      if (read.ec != std::errc() || leading_zero) fail("the number " + digits + " is not supported", line_);
      add(TokenKind::kNumber, digits, Value(value));
    }
    advance_to(end);
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail("a string is not closed", line_);
    add(TokenKind::kString, unescaped(text_.substr(at_ + 1, end - at_ - 1), line_));
    advance_to(end + 1);
  }

  static std::string unescaped(const std::string& text, int line);

  void operation(std::string& open) {
    static constexpr std::array<std::string_view, 27> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", "!"};
    const auto* found =
        std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view o) { return follows(o); });
    if (found == kOperators.end() || *found == "!" || *found == ";") {
      std::size_t next = at_;
      text::next_code_point(text_, next);
      fail("'" + text_.substr(at_, next - at_) + "' is not valid here", line_);
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) fail(std::string("'") + c + "' has no matching opening bracket", line_);
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(*found));
    advance_to(at_ + found->size());
  }

  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

// Decodes Python's "unicode-escape", without \N{name}.
std::string Lexer::unescaped(const std::string& text, int line) {
  static constexpr std::string_view kPlain = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out += text[at++];
      continue;
    }
    const char c = text[at + 1];
    at += 2;
    if (const std::size_t known = kPlain.find(c); known != std::string_view::npos) {
      out += kMeant[known];
      continue;
    }
    if (c == '\n') continue;
    const bool octal = c >= '0' && c <= '7';
    const std::size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : octal ? 3 : 0;
    if (c == 'N') fail("\\N{...} in a string is not supported", line);
    if (num_digits == 0) {
      out += '\\', out += c;
      continue;
    }
    const char* begin = text.data() + at - (octal ? 1 : 0);
    const char* limit = std::min(begin + num_digits, text.data() + text.size());
    std::uint32_t code = 0;
    const auto read = std::from_chars(begin, limit, code, octal ? 8 : 16);
    const bool whole = octal || read.ptr == begin + num_digits;
    if (read.ec != std::errc() || !whole || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail("an escape in a string is not a character", line);
    }
    text::append_utf8(out, code);
    at = static_cast<std::size_t>(read.ptr - text.data());
  }
  return out;
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (!text::is_utf8(source)) fail("the template is not UTF-8", 1);
  return Lexer(source).run();
}

}  // namespace quire::chat
