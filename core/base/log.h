// One line per event on standard error, fixed keys: log_info("request_done", "id={} tokens={}", id, n). Never prompts.
// Shape   text: time, level, event, and the formatted rest. json: an object of these; a format of `key={}` words alone
//         makes a member of each key, any other format one member `message`.
// Thread  any; set_log_level() and set_log_format(): main, while starting. The calling thread writes the line, or,
//         while there is a LogThread, that thread does: then no caller waits for a slow reader, and lines are dropped
//         while the reader is too slow.
// Fails   never: for any arguments an event is one line, and json is valid JSON.
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

// RAII: while it lives, a thread of its own writes all log lines. At most one at a time.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;
};

// Waits until all lines are written, 200 ms at most; called before the process aborts.
void flush_log();
// Number of lines dropped because too many waited for the reader.
std::uint64_t log_lines_dropped();

// Text from outside made safe for one log line: control characters escaped, cut at 200 bytes.
std::string log_safe(std::string_view text);

// The function behind the templates, so that only one source file compiles the logging library.
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
