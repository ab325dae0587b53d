// Numbers as people type them: counts ("8192", "32k"), sizes ("4MiB", "2GiB", "4096"), times ("30s", "500ms", "2m").
// Shape   exact integer arithmetic: "1.5GiB" is a whole number of bytes, "0.3KiB" is not and is refused.
// Thread  any.
// Fails   parse_*(): kInvalidArgument saying what was expected. Signs, blanks, NaN and overflow are never a number.
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

// k M G and the like as vLLM reads them: small letters are powers of 1000, capital ones of 1024.
Result<std::uint64_t> parse_count(std::string_view text);
// As counts, and B kB MB GB TB (1000), KiB MiB GiB TiB (1024).
Result<std::uint64_t> parse_bytes(std::string_view text);
// ns us ms s m h d. The unit is needed, but for 0. At most 100 days.
Result<Duration> parse_duration(std::string_view text);

// A plain number without a unit: all of `text`, and in low..high; else nothing.
template <typename T>
std::optional<T> number_in(std::string_view text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  // The comparison is false for a NaN, too.
  return whole && value >= low && value <= high ? std::optional(value) : std::nullopt;
}

std::string bytes_text(std::uint64_t bytes);  // "1.5 GiB": for people, rounded
std::string seconds_text(Duration duration);  // "0.123 s": for people, rounded

}  // namespace quire::app
