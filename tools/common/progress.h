// Progress line on standard error, rewritten in place; prints nothing if that is not a terminal.
// Thread  one.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace quire::tools {

class Progress {
 public:
  // The prefix `what` is printed before every text; it must outlive this object.
  explicit Progress(std::string_view what) : what_(what), watched_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (watched_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& text) const {
    if (!watched_) return;
    fmt::print(stderr, "\r\033[K{}: {}", what_, text);
    std::fflush(stderr);
  }

 private:
  const std::string_view what_;
  const bool watched_;
};

}  // namespace quire::tools
