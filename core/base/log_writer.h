// Log lines on their way to a descriptor whose reader may be slow: who logs never waits for it.
// Shape   at most max_bytes of whole lines wait. Where there is no room the oldest go, and a line in their place says how many.
// Owner   log.cc, of one at a time. Destruction writes what waits, for kPatience at most: a reader that is stuck holds up no end.
// Thread  any; a thread of its own writes.
// Fails   never: a descriptor that cannot be written to takes lines away.
// Source  ours. A pipe that says it can be written to takes PIPE_BUF bytes without waiting (pipe(7)).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace quire {

class LogWriter {
 public:
  static constexpr std::chrono::milliseconds kPatience{1000};

  // `of_dropped` makes the line that says how many are missing.
  LogWriter(int descriptor, std::size_t max_bytes, std::function<std::string(std::uint64_t)> of_dropped);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void write(std::string line);
  // All that was given is written, or the time is over.
  void flush(std::chrono::milliseconds patience);
  std::uint64_t num_dropped() const;

 private:
  void run();
  bool put(std::string_view text);  // false: the end came first

  const int descriptor_;
  const std::size_t max_bytes_;
  const std::function<std::string(std::uint64_t)> of_dropped_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<std::string> lines_;  // the one that is being written among them, in front
  std::size_t bytes_ = 0;
  bool writing_ = false;
  std::uint64_t num_dropped_ = 0;
  std::uint64_t num_told_ = 0;  // of these
  bool stopping_ = false;
  std::chrono::steady_clock::time_point give_up_at_{};  // once stopping
  std::thread thread_;
};

}  // namespace quire
