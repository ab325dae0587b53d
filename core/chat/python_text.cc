#include "core/chat/python_text.h"

#include <algorithm>

#include "core/chat/template_error.h"
#include "core/text/unicode/unicode.h"
#include "core/text/unicode/utf8.h"

namespace quire::chat {
namespace {

bool is_cased(char32_t code) {
  using text::Category;
  constexpr text::CategorySet kCased = text::set_of(Category::kLu) | text::set_of(Category::kLl) |
                                       text::set_of(Category::kLt) | text::set_of(Category::kLm) |
                                       text::set_of(Category::kNl) | text::set_of(Category::kSo);
  return (text::set_of(text::category_of(code)) & kCased) != 0;
}

// Upper case of ASCII; characters without case are unchanged. Fails for others, whose mappings are not implemented.
char32_t upper_of(char32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
  const bool is_letter_without_case = text::category_of(code) == text::Category::kLo;
  if (is_letter_without_case && (code < 0x10D0 || code > 0x10FF)) return code;
  if (is_cased(code) || code == 0x345 || is_letter_without_case)
    fail("upper case of '" + text::utf8_of({&code, 1}) + "' is not supported");
  return code;
}

char32_t character_at(std::string_view text, std::size_t at) { return text::next_code_point(text, at); }

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

std::vector<std::string> split_at_space(std::string_view text, std::int64_t max_count, bool from_right) {
  std::vector<std::string> pieces;
  const auto rest = [&] { return strip(text, nullptr, !from_right, from_right); };
  while (!(text = rest()).empty() && max_count-- != 0) {
    std::size_t begin = from_right ? text.size() : 0, end = begin;
    if (from_right) {
      while (begin > 0 && !is_python_space(character_at(text, text::previous_character(text, begin)))) {
        begin = text::previous_character(text, begin);
      }
      end = text.size();
    } else {
      while (end < text.size() && !is_python_space(character_at(text, end))) text::next_code_point(text, end);
    }
    pieces.emplace_back(text.substr(begin, end - begin));
    text = from_right ? text.substr(0, begin) : text.substr(end);
  }
  if (!text.empty()) pieces.emplace_back(text);
  return pieces;
}

}  // namespace

bool is_python_space(char32_t code) { return text::is_white_space(code) || (code >= 0x1C && code <= 0x1F); }

std::string_view strip(std::string_view text, const std::string* chars, bool left, bool right) {
  const auto goes = [&](std::size_t at) {
    std::size_t end = at;
    const char32_t code = text::next_code_point(text, end);
    return chars == nullptr ? is_python_space(code) : chars->find(text.substr(at, end - at)) != std::string::npos;
  };
  std::size_t begin = 0, end = text.size();
  while (left && begin < end && goes(begin)) text::next_code_point(text, begin);
  while (right && end > begin && goes(text::previous_character(text, end))) end = text::previous_character(text, end);
  return text.substr(begin, end - begin);
}

std::string upper(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) text::append_utf8(out, upper_of(text::next_code_point(text, at)));
  return out;
}

std::string lower(std::string_view text) {
  if (text.find("\xCE\xA3") != std::string_view::npos) fail("lower case of a capital sigma is not supported");
  return text::lowercased(text);
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return "";
  std::size_t first = 0;
  text::next_code_point(text, first);
  return upper(text.substr(0, first)) + lower(text.substr(first));
}

std::string titled(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0, begin = 0; at < text.size(); begin = at) {
    const char32_t code = text::next_code_point(text, at);
    const std::string_view letter = text.substr(begin, at - begin);
    const bool cased = code < 0x80 ? (code | 32) >= 'a' && (code | 32) <= 'z' : is_cased(code);
    out += !cased ? std::string(letter) : in_word ? lower(letter) : upper(letter);
    in_word = cased;
  }
  return out;
}

std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t max_count) {
  std::string out;
  std::size_t at = 0;
  while (max_count-- != 0) {
    if (old.empty()) {  // `with` goes between all characters and at both ends
      out += with;
      if (at >= text.size()) break;
      const std::size_t begin = at;
      text::next_code_point(text, at);
      out += text.substr(begin, at - begin);
      continue;
    }
    const std::size_t found = text.find(old, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += with;
    at = found + old.size();
  }
  return out += text.substr(std::min(at, text.size()));
}

std::vector<std::string> split(std::string_view text, const std::string* separator, std::int64_t max_count,
                               bool from_right) {
  if (separator == nullptr) {
    std::vector<std::string> pieces = split_at_space(text, max_count, from_right);
    if (from_right) std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }
  if (separator->empty()) fail("empty separator");
  std::vector<std::string> pieces;
  while (max_count-- != 0) {
    const std::size_t found = from_right ? text.rfind(*separator) : text.find(*separator);
    if (found == std::string_view::npos) break;
    const std::size_t behind = found + separator->size();
    pieces.emplace_back(from_right ? text.substr(behind) : text.substr(0, found));
    text = from_right ? text.substr(0, found) : text.substr(behind);
  }
  pieces.emplace_back(text);
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t code = text::next_code_point(text, at);
    if (!is_line_end(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::vector<std::size_t> sliced(const Slice& slice, std::size_t length) {
  const std::int64_t step = slice.step.value_or(1), size = static_cast<std::int64_t>(length);
  if (step == 0) fail("slice step cannot be zero");
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bounded = [&](std::optional<std::int64_t> position, std::int64_t otherwise) {
    if (!position) return otherwise;
    return std::clamp(*position < 0 ? *position + size : *position, low, high);
  };
  std::vector<std::size_t> positions;
  const std::int64_t stop = bounded(slice.stop, step > 0 ? high : low);
  for (std::int64_t at = bounded(slice.start, step > 0 ? low : high); step > 0 ? at < stop : at > stop;) {
    positions.push_back(static_cast<std::size_t>(at));
    if (step > size || step < -size) break;  // the only position; also avoids overflow
    at += step;
  }
  return positions;
}

}  // namespace quire::chat
