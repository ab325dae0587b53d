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
#include "app/process/progress_line.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr int kDrawingsBetweenLines = 100;
constexpr std::size_t kMaxFiles = 8;  // under way, each with a line

std::size_t files_on_terminal() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2;
  return is_known ? std::min<std::size_t>(kMaxFiles, size.ws_row - 2u) : kMaxFiles;
}

WorkDone work_of(const hub::Progress::View& view) { return {view.on_disk, view.size, view.received}; }

}  // namespace

DownloadDisplay::DownloadDisplay(std::string name, const hub::Progress& progress,
                                 std::function<void(double)> on_progress)
    : name_(std::move(name)),
      progress_(progress),
      on_progress_(std::move(on_progress)),
      on_terminal_(draws_progress()),
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
      text += cut_to_width(fmt::format("  {}  {}", log_safe(file.path), bytes_text(file.size)), width) + "\n";
    }
    if (file.state != hub::Progress::State::kRunning || running.size() == most) continue;
    running.push_back(cut_to_width(
        fmt::format("  {}  {} of {}", log_safe(file.path), bytes_text(file.on_disk), bytes_text(file.size)), width));
  }
  running.push_back(progress_line(name_, work_of(view), SteadyClock().now() - begun_, width));
  for (const std::string& line : running) text += line + "\n";
  num_lines_ = running.size();
  std::fputs(text.c_str(), stderr);
}

void DownloadDisplay::log(const hub::Progress::View& view) const {
  log_info("download", progress_fields(name_, work_of(view), SteadyClock().now() - begun_));
}

}  // namespace quire::app
