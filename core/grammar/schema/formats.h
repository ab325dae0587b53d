// The known formats. Those of strings are enforced by a pattern: every text that it matches is valid for the format,
// but not every valid text matches it.
// Thread  any.
// Source  RFC 3339 (date, time, date-time, duration), RFC 4122 (uuid), RFC 2673 (ipv4), RFC 4291 (ipv6), RFC 5321
//         (email), RFC 1123 (hostname), RFC 3986 (uri), RFC 6901 (json-pointer).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire::grammar {

struct Format {
  std::string_view name;
  std::string_view note;
  std::string pattern;  // of the whole text, in the syntax of regex.h; empty: does not constrain strings
};

std::span<const Format> formats();
const Format* find_format(std::string_view name);

}  // namespace quire::grammar
