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
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/json_string.h"
#include "core/base/log_writer.h"

namespace quire {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

LogFormat the_format = LogFormat::kText;  // set before threads start

// The part of a line after time and level.
std::string message_of(std::string_view event, fmt::string_view format, fmt::format_args args);

// spdlog's sink to standard error: the calling thread writes, or a LogWriter.
class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void begin_thread() {
    const std::lock_guard lock(mutex_);
    const auto of_dropped = [this](std::uint64_t lines) {
      const std::string text = message_of("log_lines_dropped", "lines={}", fmt::make_format_args(lines));
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

  const bool colours_ = spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
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

struct KeyAndField {
  std::string_view key;
  std::string_view field;  // "{}", "{:.1f}"
};

// The keys and fields of a format such as "id={} ms={:.1f}"; empty for any other format.
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

// True if the argument is written to JSON without quotes: a finite number or a bool.
bool is_bare(fmt::format_args args, int index) {
  return fmt::visit_format_arg(
      [](auto value) {
        using Value = decltype(value);
        if constexpr (std::is_floating_point_v<Value>) return std::isfinite(value);
        return std::is_integral_v<Value> && !std::is_same_v<Value, char>;
      },
      args.get(index));
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

// The members of a JSON line after time and level.
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

std::string message_of(std::string_view event, fmt::string_view format, fmt::format_args args) {
  const bool json = the_format == LogFormat::kJson;
  return one_line(json ? json_members(event, format, args) : std::string(event) + ' ' + fmt::vformat(format, args));
}

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

void set_log_level(LogLevel level) { spdlog::set_level(spdlog_level(level)); }

void write_log(LogLevel level, std::string_view event, fmt::string_view format, fmt::format_args args) {
  if (!spdlog::should_log(spdlog_level(level))) return;
  spdlog::log(spdlog_level(level), "{}", message_of(event, format, args));
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
