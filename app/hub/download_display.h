// Shows a download: on a terminal a line for each file under way and one for all, drawn ten times a second; elsewhere
// an event of the log every ten seconds.
// Owner   the caller; the destructor draws the last state.
// Thread  its own draws, and calls `on_progress`.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "hub/progress.h"

namespace quire::app {

class DownloadDisplay {
 public:
  DownloadDisplay(std::string name, const hub::Progress& progress, std::function<void(double fraction)> on_progress);
  ~DownloadDisplay();
  DownloadDisplay(const DownloadDisplay&) = delete;
  DownloadDisplay& operator=(const DownloadDisplay&) = delete;

 private:
  void run();
  void draw(const hub::Progress::View& view);
  void log(const hub::Progress::View& view) const;

  const std::string name_;
  const hub::Progress& progress_;
  const std::function<void(double)> on_progress_;
  const bool on_terminal_;
  const TimePoint begun_;
  std::size_t num_lines_ = 0;   // drawn last, and to be drawn over
  std::vector<bool> is_shown_;  // [files] the last line is drawn
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace quire::app
