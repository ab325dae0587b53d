#include "core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/base/json_string.h"

namespace quire {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

LogFormat the_format = LogFormat::kText;  // set before there are threads

// Colour only where standard error is a terminal: spdlog's colour sink decides by isatty.
const bool kLoggerReady = [] {
  auto logger = spdlog::stderr_color_mt("quire");
  logger->set_pattern(kTextPattern);
  spdlog::set_default_logger(std::move(logger));
  return true;
}();

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err, spdlog::level::off};
  return kLevels[static_cast<int>(level)];
}

struct KeyAndField {
  std::string_view key;
  std::string_view field;  // "{}", "{:.1f}"
};

// Of "id={} ms={:.1f}"; empty where a format is anything else.
std::vector<KeyAndField> keys_of(std::string_view format) {
  std::vector<KeyAndField> keys;
  while (!format.empty()) {
    const std::string_view word = format.substr(0, format.find(' '));
    format.remove_prefix(std::min(format.size(), word.size() + 1));
    const std::size_t equals = word.find("={");
    const bool is_pair = equals != word.npos && equals > 0 && word.find('}') + 1 == word.size() &&
                         word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == equals;
    if (!is_pair) return {};
    keys.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return keys;
}

// Numbers that JSON has, and yes or no: the rest is text.
bool is_bare(fmt::format_args args, int index) {
  return fmt::visit_format_arg(
      [](auto value) {
        using Value = decltype(value);
        if constexpr (std::is_floating_point_v<Value>) return std::isfinite(value);
        return std::is_integral_v<Value> && !std::is_same_v<Value, char>;
      },
      args.get(index));
}

// Nothing that ends a line, for whoever reads it: control characters of ASCII, U+0080 to U+009F, U+2028 and U+2029.
std::string one_line(std::string_view text) {
  std::string out;
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (byte(i) < 0x20 || byte(i) == 0x7f) {
      out += fmt::format("\\x{:02x}", byte(i));
    } else if (byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0) {
      out += fmt::format("\\u00{:02x}", byte(++i));
    } else if (byte(i) == 0xe2 && byte(i + 1) == 0x80 && (byte(i + 2) == 0xa8 || byte(i + 2) == 0xa9)) {
      out += byte(i + 2) == 0xa8 ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The members behind time and level.
std::string json_members(std::string_view event, fmt::string_view format, fmt::format_args args) {
  std::string out = "\"event\":";
  append_json_string(out, event);
  const auto add = [&out](std::string_view key, std::string_view value, bool bare) {
    out += ',';
    append_json_string(out, key);
    out += ':';
    if (bare) {
      out += value;
    } else {
      append_json_string(out, value);
    }
  };
  const std::vector<KeyAndField> keys = keys_of({format.data(), format.size()});
  if (keys.empty()) add("message", fmt::vformat(format, args), false);
  for (int i = 0; i < static_cast<int>(keys.size()); ++i) {
    const KeyAndField& one = keys[static_cast<std::size_t>(i)];
    const std::string numbered = fmt::format("{{{}{}", i, one.field.substr(1));
    add(one.key, fmt::vformat(numbered, args), is_bare(args, i));
  }
  return out;
}

}  // namespace

void set_log_format(LogFormat format) {
  the_format = format;
  spdlog::set_pattern(format == LogFormat::kJson ? kJsonPattern : kTextPattern);
  (void)kLoggerReady;
}

LogFormat log_format() { return the_format; }

void set_log_level(LogLevel level) {
  spdlog::set_level(spdlog_level(level));
  (void)kLoggerReady;
}

void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args) {
  if (!spdlog::should_log(spdlog_level(level))) return;
  const bool json = the_format == LogFormat::kJson;
  const std::string told =
      json ? json_members(event, format, args) : std::string(event) + ' ' + fmt::vformat(format, args);
  spdlog::log(spdlog_level(level), "{}", one_line(told));
}

std::string log_safe(std::string_view text) {
  constexpr std::size_t kMaxBytes = 200;
  std::string out;
  for (const char c : text.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > kMaxBytes) out += "...";
  return out;
}

}  // namespace quire
