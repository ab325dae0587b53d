// One line per event on standard error: a message, log_warn("few_files", "limited to {}", n), or fields,
// log_info("drain", {{"signal", n}}). Never prompts, unless --log-requests content asks for them.
// Shape   text: time, level, event, then the message or key=value words; a value that is empty or has a space, a quote
//         or an equals sign is a JSON string. json: an object of these: a member for each field, or one of the name
//         `message`. Times are local and carry their offset.
// Thread  any; the set_… functions and no_log_colours(): main, while starting. The calling thread writes the line, or,
//         while there is a LogThread, that thread does: then no caller waits for a slow reader, and lines are dropped
//         while the reader is too slow.
// Fails   never: for any arguments an event is one line, and json is valid JSON.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

void set_log_level(LogLevel level);

enum class LogFormat { kText, kJson };
void set_log_format(LogFormat format);
LogFormat log_format();
void no_log_colours();  // else levels are coloured on a terminal

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

// A field of an event.
class LogField {
 public:
  LogField(std::string_view key, std::string_view text) : key_(key), text_(text), bare_(false) {}
  LogField(std::string_view key, const std::string& text) : LogField(key, std::string_view(text)) {}
  LogField(std::string_view key, const char* text) : LogField(key, std::string_view(text)) {}
  LogField(std::string_view key, bool value) : key_(key), text_(value ? "true" : "false"), bare_(true) {}
  LogField(std::string_view key, std::integral auto value) : key_(key), text_(std::to_string(value)), bare_(true) {}
  LogField(std::string_view key, double value);  // to at most three decimals

  std::string_view key() const { return key_; }
  std::string_view text() const { return text_; }
  bool bare() const { return bare_; }  // a finite number or a bool, which JSON writes without quotes

 private:
  std::string_view key_;  // a literal
  std::string text_;
  bool bare_;
};
using LogFields = std::vector<LogField>;

void log_fields(LogLevel level, std::string_view event, const LogFields& fields);
inline void log_info(std::string_view event, const LogFields& fields) { log_fields(LogLevel::kInfo, event, fields); }
inline void log_warn(std::string_view event, const LogFields& fields) { log_fields(LogLevel::kWarn, event, fields); }
inline void log_error(std::string_view event, const LogFields& fields) { log_fields(LogLevel::kError, event, fields); }

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
