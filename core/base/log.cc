#include "core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace quire {
namespace {

// Colour only where standard error is a terminal: spdlog's colour sink decides by isatty.
const bool kLoggerReady = [] {
  auto logger = spdlog::stderr_color_mt("quire");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
  return true;
}();

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err, spdlog::level::off};
  return kLevels[static_cast<int>(level)];
}

}  // namespace

void set_log_level(LogLevel level) {
  spdlog::set_level(spdlog_level(level));
  (void)kLoggerReady;
}

void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args) {
  if (!spdlog::should_log(spdlog_level(level))) return;
  spdlog::log(spdlog_level(level), "{} {}", event, fmt::vformat(format, args));
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
