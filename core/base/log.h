// One line per event on standard error, fixed keys: log_info("request_done", "id={} tokens={}", id, n). Never prompts.
// Shape   text: time, level, event, and what follows. json: an object of these; a format that is nothing but `key={}` makes
//         members of its keys, another one `message`.
// Thread  any; set_log_level() and set_log_format(): main, while starting. Lines are written by whoever logs, or, while there is a
//         LogThread, by that: then nobody waits for a reader that is slow, and lines are lost where it stays so.
// Fails   never: whatever a line is made of, it stays one line, and the JSON is JSON.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

void set_log_level(LogLevel level);

enum class LogFormat { kText, kJson };
void set_log_format(LogFormat format);
LogFormat log_format();

// From its beginning to its end a thread writes what is logged. One at a time.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;
};

// What was logged is written, or some time has passed: before the process dies.
void flush_log();
// Lines that no reader has, because so much waited for it.
std::uint64_t log_lines_dropped();

// What came from outside, fit for one log line: control characters escaped, cut at 200 bytes.
std::string log_safe(std::string_view text);

// Behind the templates, so that one unit alone compiles the logging library.
void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void log_info(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kInfo, event, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_warn(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kWarn, event, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_error(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kError, event, format, fmt::make_format_args(args...));
}

}  // namespace quire
