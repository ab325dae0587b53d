// One line about long work that is measured in bytes: a bar on a terminal, where it is drawn over, and an event of the
// log elsewhere.
// Shape   " 43 % [########..........]  0.6 GiB of 1.4 GiB  52.1 MiB/s  0:14 left  Qwen/Qwen3-0.6B"
// Owner   the caller of WorkDisplay; its destructor erases the line.
// Thread  the owner's; functions: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/log.h"

namespace quire::app {

// Bytes done, of all; and those done since the work began, which say how fast it is.
struct WorkDone {
  std::uint64_t done = 0;
  std::uint64_t size = 0;
  std::uint64_t since_begin = 0;

  double fraction() const;  // 0..1
  double rate(Duration took) const;
};

// For the log.
LogFields progress_fields(std::string_view name, const WorkDone& work, Duration took);

// Ends with `subject`, which a narrow terminal cuts.
std::string progress_line(std::string_view subject, const WorkDone& work, Duration took, std::size_t width);

// Standard error is a terminal, and the log is not JSON.
bool draws_progress();
std::size_t width_of_terminal();
// At most width - 1 bytes, without a part of a character.
std::string cut_to_width(std::string line, std::size_t width);

// Work of the owner's own thread, which says after each part how far it is. Short work that is
// over within a tenth of a second is not shown.
class WorkDisplay {
 public:
  // work: "packing". name: of the model.
  WorkDisplay(std::string work, std::string name, std::function<void(double fraction)> on_progress = nullptr);
  ~WorkDisplay();
  WorkDisplay(const WorkDisplay&) = delete;
  WorkDisplay& operator=(const WorkDisplay&) = delete;

  void show(std::uint64_t done, std::uint64_t size);

 private:
  const std::string work_;
  const std::string name_;
  const std::function<void(double)> on_progress_;
  const bool draws_;
  const TimePoint begun_;
  TimePoint shown_;
  bool has_line_ = false;
};

}  // namespace quire::app
