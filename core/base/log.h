// One line per event on standard error, fixed keys: log_info("request_done", "id={} tokens={}", id, n). Never prompts.
// Thread  any.
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>

namespace quire {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

void set_log_level(LogLevel level);

// What came from outside, fit for one log line: control characters escaped, cut at 200 bytes.
std::string log_safe(std::string_view text);

template <typename... Args>
void log_info(std::string_view event, spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::info("{} {}", event, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warn(std::string_view event, spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::warn("{} {}", event, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(std::string_view event, spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::error("{} {}", event, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace quire
