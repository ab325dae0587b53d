// A bounded queue of log lines and a thread that writes them to a descriptor with a possibly slow reader: a caller
// never waits for that reader.
// Shape   at most max_bytes of whole lines wait. Without room the oldest are dropped, and a line in their place has
//         their number.
// Owner   log.cc, at most one at a time. The destructor writes the waiting lines, for kPatience at most, so that a
//         stuck reader does not block the end of the process.
// Thread  any; a thread of its own writes.
// Fails   never: lines are dropped if writing to the descriptor fails.
// Source  ours. A pipe that poll() calls writable takes PIPE_BUF bytes without blocking (pipe(7)).
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

  // `of_dropped` makes the line about so many dropped lines. Borrows `descriptor`.
  LogWriter(int descriptor, std::size_t max_bytes, std::function<std::string(std::uint64_t)> of_dropped);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void write(std::string line);
  // Waits until all lines are written, or for `patience`.
  void flush(std::chrono::milliseconds patience);
  std::uint64_t num_dropped() const;

 private:
  void run();
  bool put(std::string_view text);  // false: the destructor's time was over first

  const int descriptor_;
  const std::size_t max_bytes_;
  const std::function<std::string(std::uint64_t)> of_dropped_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<std::string> lines_;  // oldest first; the front one may be being written
  std::size_t bytes_ = 0;
  bool writing_ = false;
  std::uint64_t num_dropped_ = 0;
  std::uint64_t num_reported_ = 0;  // dropped lines that a written line has counted
  bool stopping_ = false;
  std::chrono::steady_clock::time_point give_up_at_{};  // valid once stopping_
  std::thread thread_;
};

}  // namespace quire
