#include "app/process/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "app/config/units.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr Duration kBetweenDrawings = std::chrono::milliseconds(100);
constexpr std::uint64_t kLongBytes = std::uint64_t{128} << 20;  // no machine packs them in a moment
constexpr Duration kBetweenEvents = std::chrono::seconds(10);

std::string left_text(const WorkDone& work, double rate) {
  if (rate < 1.0 || work.done >= work.size) return "";
  const auto seconds = static_cast<std::uint64_t>(static_cast<double>(work.size - work.done) / rate);
  if (seconds >= 3600) return fmt::format("{}:{:02}:{:02} left  ", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02} left  ", seconds / 60, seconds % 60);
}

}  // namespace

double WorkDone::fraction() const {
  return size == 0 ? 0.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(size));
}

double WorkDone::rate(Duration took) const {
  const double seconds = std::chrono::duration<double>(took).count();
  return seconds <= 0 ? 0.0 : static_cast<double>(since_begin) / seconds;
}

LogFields progress_fields(std::string_view name, const WorkDone& work, Duration took) {
  return {{"model", log_safe(name)},
          {"percent", std::llround(100 * work.fraction())},
          {"bytes", work.done},
          {"of", work.size},
          {"bytes_per_second", std::llround(work.rate(took))}};
}

std::string progress_line(std::string_view subject, const WorkDone& work, Duration took, std::size_t width) {
  constexpr std::size_t kBar = 18;
  const double rate = work.rate(took);
  const auto filled = static_cast<std::size_t>(work.fraction() * kBar);
  const std::string bar = std::string(filled, '#') + std::string(kBar - filled, '.');
  return cut_to_width(
      fmt::format("{:3.0f} % [{}]  {} of {}  {}/s  {}{}", 100 * work.fraction(), bar, bytes_text(work.done),
                  bytes_text(work.size), bytes_text(static_cast<std::uint64_t>(rate)), left_text(work, rate), subject),
      width);
}

bool draws_progress() { return isatty(STDERR_FILENO) == 1 && log_format() != LogFormat::kJson; }

std::size_t width_of_terminal() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string cut_to_width(std::string line, std::size_t width) {
  if (line.size() < width) return line;
  std::size_t end = width - 1;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  line.resize(end);
  return line;
}

WorkDisplay::WorkDisplay(std::string work, std::string name, std::function<void(double)> on_progress)
    : work_(std::move(work)),
      name_(std::move(name)),
      on_progress_(std::move(on_progress)),
      draws_(draws_progress()),
      begun_(SteadyClock().now()),
      shown_(begun_) {}

WorkDisplay::~WorkDisplay() {
  if (has_line_) std::fputs("\r\x1b[K", stderr);
}

void WorkDisplay::show(std::uint64_t done, std::uint64_t size) {
  const WorkDone so_far{done, size, done};
  if (on_progress_) on_progress_(so_far.fraction());
  const TimePoint now = SteadyClock().now();
  const bool is_first_of_long = draws_ && !has_line_ && size >= kLongBytes;
  if (!is_first_of_long && now - shown_ < (draws_ ? kBetweenDrawings : kBetweenEvents)) return;
  shown_ = now;
  if (!draws_) {
    log_info(work_, progress_fields(name_, so_far, now - begun_));
    return;
  }
  has_line_ = true;
  std::fputs(("\r\x1b[K" + progress_line(work_ + " " + name_, so_far, now - begun_, width_of_terminal())).c_str(),
             stderr);
}

}  // namespace quire::app
