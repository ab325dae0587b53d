#include "app/hub/download_display.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "app/config/units.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr int kDrawingsBetweenLines = 100;
constexpr std::size_t kMaxFiles = 8;  // under way, each with a line

std::size_t width_of_terminal() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// At most width - 1 bytes, without a part of a character.
std::string cut(std::string line, std::size_t width) {
  if (line.size() < width) return line;
  std::size_t end = width - 1;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  line.resize(end);
  return line;
}

std::size_t files_on_terminal() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2;
  return is_known ? std::min<std::size_t>(kMaxFiles, size.ws_row - 2u) : kMaxFiles;
}

double rate_of(const hub::Progress::View& view, Duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  return seconds <= 0 ? 0.0 : static_cast<double>(view.received) / seconds;
}

std::string left_text(const hub::Progress::View& view, double rate) {
  if (rate < 1.0 || view.on_disk >= view.size) return "";
  const auto seconds = static_cast<std::uint64_t>(static_cast<double>(view.size - view.on_disk) / rate);
  if (seconds >= 3600) return fmt::format("{}:{:02}:{:02} left  ", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02} left  ", seconds / 60, seconds % 60);
}

}  // namespace

std::string total_line(std::string_view name, const hub::Progress::View& view, Duration took, std::size_t width) {
  constexpr std::size_t kBar = 18;
  const double rate = rate_of(view, took);
  const auto filled = static_cast<std::size_t>(view.fraction() * kBar);
  const std::string bar = std::string(filled, '#') + std::string(kBar - filled, '.');
  return cut(
      fmt::format("{:3.0f} % [{}]  {} of {}  {}/s  {}{}", 100 * view.fraction(), bar, bytes_text(view.on_disk),
                  bytes_text(view.size), bytes_text(static_cast<std::uint64_t>(rate)), left_text(view, rate), name),
      width);
}

DownloadDisplay::DownloadDisplay(std::string name, const hub::Progress& progress,
                                 std::function<void(double)> on_progress)
    : name_(std::move(name)),
      progress_(progress),
      on_progress_(std::move(on_progress)),
      on_terminal_(isatty(STDERR_FILENO) == 1 && log_format() != LogFormat::kJson),
      begun_(SteadyClock().now()),
      thread_([this] { run(); }) {}

DownloadDisplay::~DownloadDisplay() {
  {
    const std::scoped_lock lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
  const hub::Progress::View view = progress_.view();
  if (view.received == 0) return;
  if (on_terminal_) {
    draw(view);
  } else {
    log(view);
  }
}

void DownloadDisplay::run() {
  std::unique_lock lock(mutex_);
  for (int i = 1; !ended_.wait_for(lock, kBetweenDrawings, [this] { return has_ended_; }); ++i) {
    const hub::Progress::View view = progress_.view();
    if (on_progress_) on_progress_(view.fraction());
    if (on_terminal_) {
      draw(view);
    } else if (i % kDrawingsBetweenLines == 0) {
      log(view);
    }
  }
}

void DownloadDisplay::draw(const hub::Progress::View& view) {
  const std::size_t width = width_of_terminal();
  const std::size_t most = files_on_terminal();
  std::string text = num_lines_ == 0 ? "" : fmt::format("\x1b[{}A\x1b[J", num_lines_);
  std::vector<std::string> running;
  is_shown_.resize(view.files.size());
  for (std::size_t i = 0; i < view.files.size(); ++i) {
    const hub::Progress::File& file = view.files[i];
    if (file.state == hub::Progress::State::kDone && !is_shown_[i]) {
      is_shown_[i] = true;
      text += cut(fmt::format("  {}  {}", log_safe(file.path), bytes_text(file.size)), width) + "\n";
    }
    if (file.state != hub::Progress::State::kRunning || running.size() == most) continue;
    running.push_back(cut(
        fmt::format("  {}  {} of {}", log_safe(file.path), bytes_text(file.on_disk), bytes_text(file.size)), width));
  }
  running.push_back(total_line(name_, view, SteadyClock().now() - begun_, width));
  for (const std::string& line : running) text += line + "\n";
  num_lines_ = running.size();
  std::fputs(text.c_str(), stderr);
}

void DownloadDisplay::log(const hub::Progress::View& view) const {
  const double rate = rate_of(view, SteadyClock().now() - begun_);
  log_info("download", "model={} percent={:.0f} bytes={} of={} bytes_per_second={:.0f}", name_, 100 * view.fraction(),
           view.on_disk, view.size, rate);
}

}  // namespace quire::app
