#include "core/base/log.h"

#include <spdlog/details/os.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/json_string.h"
#include "core/base/log_writer.h"

namespace quire {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

LogFormat the_format = LogFormat::kText;  // set before threads start

// The part of a line after time and level.
std::string message_of(std::string_view event, const LogFields& fields);

// spdlog's sink to standard error: the calling thread writes, or a LogWriter.
class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void begin_thread() {
    const std::lock_guard lock(mutex_);
    const auto of_dropped = [this](std::uint64_t lines) {
      const std::string text = message_of("log_lines_dropped", {{"lines", lines}});
      const std::lock_guard formatting(mutex_);
      return line_of(spdlog::details::log_msg(spdlog::string_view_t(), spdlog::level::warn, text));
    };
    writer_ = std::make_shared<LogWriter>(STDERR_FILENO, kMaxWaitingBytes, of_dropped);
  }
  void end_thread() {
    std::shared_ptr<LogWriter> ended;
    {
      const std::lock_guard lock(mutex_);
      ended = std::exchange(writer_, nullptr);
      num_dropped_ += ended->num_dropped();
    }
  }
  void flush_thread() {
    if (const std::shared_ptr<LogWriter> writer = the_writer()) writer->flush(kLastWords);
  }
  void no_colours() { colours_ = false; }
  std::uint64_t num_dropped() {
    const std::lock_guard lock(mutex_);
    return num_dropped_ + (writer_ ? writer_->num_dropped() : 0);
  }

 private:
  static constexpr std::size_t kMaxWaitingBytes = std::size_t{1} << 20;
  static constexpr std::chrono::milliseconds kLastWords{200};

  std::shared_ptr<LogWriter> the_writer() {
    const std::lock_guard lock(mutex_);
    return writer_;
  }
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string line = line_of(message);
    if (writer_) return writer_->write(std::move(line));
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
  }
  void flush_() override {}

  std::string line_of(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    if (!colours_ || message.color_range_end <= message.color_range_start) return line;
    constexpr const char* kColours[] = {"\x1b[37m",        "\x1b[36m",        "\x1b[32m",
                                        "\x1b[33m\x1b[1m", "\x1b[31m\x1b[1m", "\x1b[1m\x1b[41m"};
    line.insert(message.color_range_end, "\x1b[m");
    line.insert(message.color_range_start, kColours[std::min<std::size_t>(message.level, std::size(kColours) - 1)]);
    return line;
  }

  bool colours_ = spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
  std::shared_ptr<LogWriter> writer_;  // null: the calling thread writes
  std::uint64_t num_dropped_ = 0;      // by earlier writers
};

const std::shared_ptr<Sink> kSink = [] {
  auto sink = std::make_shared<Sink>();
  auto logger = std::make_shared<spdlog::logger>("quire", sink);
  logger->set_pattern(kTextPattern);
  spdlog::set_default_logger(std::move(logger));
  return sink;
}();

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err, spdlog::level::off};
  return kLevels[static_cast<int>(level)];
}

// Escapes every character that some reader takes as the end of a line or for control: ASCII's control characters,
// U+0080 to U+009F, U+2028 and U+2029.
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

// True if a text line has the value as it is.
bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) { return c == ' ' || c == '"' || c == '='; });
}

void append_text(std::string& out, std::string_view text, bool quoted) {
  if (quoted) {
    append_json_string(out, text);
  } else {
    out += text;
  }
}

std::string message_of(std::string_view event, const LogFields& fields) {
  const bool json = the_format == LogFormat::kJson;
  std::string out = json ? "\"event\":" : "";
  append_text(out, event, json);
  for (const LogField& field : fields) {
    out += json ? ',' : ' ';
    append_text(out, field.key(), json);
    out += json ? ':' : '=';
    append_text(out, field.text(), json ? !field.bare() : !is_word(field.text()));
  }
  return one_line(out);
}

void write_line(LogLevel level, const std::string& message) { spdlog::log(spdlog_level(level), "{}", message); }

}  // namespace

LogThread::LogThread() { kSink->begin_thread(); }
LogThread::~LogThread() { kSink->end_thread(); }
void flush_log() { kSink->flush_thread(); }
std::uint64_t log_lines_dropped() { return kSink->num_dropped(); }

void set_log_format(LogFormat format) {
  the_format = format;
  spdlog::set_pattern(format == LogFormat::kJson ? kJsonPattern : kTextPattern);
}

LogFormat log_format() { return the_format; }
void no_log_colours() { kSink->no_colours(); }

void set_log_level(LogLevel level) { spdlog::set_level(spdlog_level(level)); }

LogField::LogField(std::string_view key, double value)
    : key_(key), text_(fmt::to_string(std::round(value * 1000) / 1000)), bare_(std::isfinite(value)) {}

void log_fields(LogLevel level, std::string_view event, const LogFields& fields) {
  if (spdlog::should_log(spdlog_level(level))) write_line(level, message_of(event, fields));
}

void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args) {
  if (!spdlog::should_log(spdlog_level(level))) return;
  const std::string message = fmt::vformat(format, args);
  const bool json = the_format == LogFormat::kJson;
  write_line(level, json ? message_of(event, {{"message", message}}) : one_line(std::string(event) + ' ' + message));
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
