#include "app/config/units.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <optional>
#include <span>

namespace quire::app {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::uint64_t kKibi = 1024;
constexpr std::uint64_t kMebi = kKibi * 1024;
constexpr std::uint64_t kGibi = kMebi * 1024;
constexpr std::uint64_t kTebi = kGibi * 1024;

constexpr Unit kCounts[] = {
    {"", 1},      {"k", 1'000}, {"m", 1'000'000}, {"g", 1'000'000'000}, {"t", 1'000'000'000'000},
    {"K", kKibi}, {"M", kMebi}, {"G", kGibi},     {"T", kTebi}};
constexpr Unit kBytes[] = {
    {"B", 1},       {"kB", 1'000},  {"KB", 1'000},  {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000},
    {"KiB", kKibi}, {"MiB", kMebi}, {"GiB", kGibi}, {"TiB", kTebi}};
constexpr Unit kTimes[] = {{"ns", 1},
                           {"us", 1'000},
                           {"ms", 1'000'000},
                           {"s", 1'000'000'000},
                           {"m", 60'000'000'000},
                           {"h", 3'600'000'000'000},
                           {"d", 86'400'000'000'000}};

std::optional<std::uint64_t> size_of(std::string_view unit, std::span<const Unit> units) {
  for (const Unit& candidate : units) {
    if (candidate.name == unit) return candidate.size;
  }
  return std::nullopt;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Decimal {
  std::uint64_t digits = 0;  // all digits, without the decimal point
  std::uint64_t scale = 1;   // 10 to the digits after the point
  std::string_view unit;
};

// "12.5ms" → 125, 10, "ms". Empty if there is no number, or more digits than 64 bits hold.
std::optional<Decimal> split(std::string_view text) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  Decimal out;
  bool point = false;
  bool digit_seen = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point && digit_seen)); ++at) {
    if (text[at] == '.') {
      point = true;
      digit_seen = false;  // "1." is not a number
      continue;
    }
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    if (out.digits > (kMax - digit) / 10) return std::nullopt;
    out.digits = out.digits * 10 + digit;
    if (point) {
      if (out.scale > kMax / 10) return std::nullopt;
      out.scale *= 10;
    }
    digit_seen = true;
  }
  if (!digit_seen) return std::nullopt;
  out.unit = text.substr(at);
  return out;
}

// digits · unit / scale, if that is a whole number of 64 bits; else empty.
std::optional<std::uint64_t> whole(const Decimal& number, std::uint64_t unit) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(number.digits) * unit;
  if (product % number.scale != 0) return std::nullopt;
  const Wide value = product / number.scale;
  if (value > std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  if (const auto number = split(text)) {
    if (const auto unit = size_of(number->unit, kCounts)) {
      if (const auto value = whole(*number, *unit)) return *value;
    }
  }
  return invalid("", "expected a whole number such as 8192 or 32k");
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto number = split(text)) {
    auto unit = size_of(number->unit, kBytes);
    if (!unit) unit = size_of(number->unit, kCounts);
    if (unit) {
      if (const auto value = whole(*number, *unit)) return *value;
    }
  }
  return invalid("", "expected a size such as 4MiB, 2GiB or 4096 (bytes)");
}

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMaxNs = 100ull * 86'400'000'000'000;
  if (text == "0") return Duration::zero();
  if (const auto number = split(text)) {
    if (const auto unit = size_of(number->unit, kTimes)) {
      const auto value = whole(*number, *unit);
      if (value && *value <= kMaxNs) return Duration(static_cast<std::int64_t>(*value));
    }
  }
  return invalid("", "expected a time such as 30s, 500ms or 2m");
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < kKibi) return fmt::format("{} B", bytes);
  if (bytes < kMebi) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / static_cast<double>(kKibi));
  if (bytes < kGibi) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMebi));
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / static_cast<double>(kGibi));
}

std::string count_text(std::uint64_t count) {
  constexpr const char* kUnits[] = {"", "K", "M", "B", "T"};
  constexpr std::uint64_t kThousand = 1000;
  constexpr double kRoundsUp = 999.5;
  if (count < kThousand) return fmt::format("{}", count);
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  for (; value >= kRoundsUp && unit + 1 < std::size(kUnits); ++unit) value /= static_cast<double>(kThousand);
  return value < 9.95 ? fmt::format("{:.1f}{}", value, kUnits[unit]) : fmt::format("{:.0f}{}", value, kUnits[unit]);
}

std::string seconds_text(Duration duration) {
  return fmt::format("{:.3f} s", std::chrono::duration<double>(duration).count());
}

}  // namespace quire::app
