// ASCII text functions for HTTP: independent of the locale, and correct for negative char values.
// Thread  any; pure functions.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace quire::api::http {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool iequals(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return to_lower(x) == to_lower(y); });
}

// Removes optional whitespace (SP, HTAB) from both ends.
constexpr std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Decodes percent-encoding: "org%2Fname" → "org/name". A percent sign without two hexadecimal digits is kept.
inline std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto end = std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16);
      if (end.ec == std::errc() && end.ptr == &text[i + 1] + 2) {
        out += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace quire::api::http
