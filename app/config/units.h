// Numbers as typed in settings: counts ("8192", "32k"), sizes ("4MiB", "2GiB", "4096"), times ("30s", "500ms", "2m").
// Shape   exact integer arithmetic: "1.5GiB" is a whole number of bytes, "0.3KiB" is not and is rejected.
// Thread  any.
// Fails   parse_*(): kInvalidArgument with what was expected. Signs, blanks, NaN and overflow are errors.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

// Suffixes k M G and so on as in vLLM: small letters are powers of 1000, capital ones of 1024.
Result<std::uint64_t> parse_count(std::string_view text);
// As parse_count(), and B kB MB GB TB (1000), KiB MiB GiB TiB (1024).
Result<std::uint64_t> parse_bytes(std::string_view text);
// Suffixes ns us ms s m h d; only 0 needs none. At most 100 days.
Result<Duration> parse_duration(std::string_view text);

// A plain number without a unit, if it is all of `text` and in low..high; else empty.
template <typename T>
std::optional<T> number_in(std::string_view text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  // For a NaN the comparison is false, too.
  return whole && value >= low && value <= high ? std::optional(value) : std::nullopt;
}

std::string bytes_text(std::uint64_t bytes);  // "1.5 GiB": rounded, for messages
std::string count_text(std::uint64_t count);  // "135M", "1.2B": rounded to two or three digits, for messages
std::string seconds_text(Duration duration);  // "0.123 s": rounded, for messages

}  // namespace quire::app
