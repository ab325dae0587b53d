#include "core/base/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace quire {

LogWriter::LogWriter(int descriptor, std::size_t max_bytes, std::function<std::string(std::uint64_t)> of_dropped)
    : descriptor_(descriptor), max_bytes_(max_bytes), of_dropped_(std::move(of_dropped)), thread_([this] { run(); }) {}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    give_up_at_ = std::chrono::steady_clock::now() + kPatience;
  }
  changed_.notify_all();
  thread_.join();
}

void LogWriter::write(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    // The line being written stays, since a part of it may be out already.
    const std::size_t kept = writing_ ? 1 : 0;
    while (bytes_ + line.size() > max_bytes_ && lines_.size() > kept) {
      const auto oldest = lines_.begin() + static_cast<std::ptrdiff_t>(kept);
      bytes_ -= oldest->size();
      lines_.erase(oldest);
      ++num_dropped_;
    }
    if (bytes_ + line.size() > max_bytes_) {
      ++num_dropped_;
      return;
    }
    bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

void LogWriter::flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return lines_.empty(); });
}

std::uint64_t LogWriter::num_dropped() const {
  const std::lock_guard lock(mutex_);
  return num_dropped_;
}

void LogWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::uint64_t missing = num_dropped_ - std::exchange(num_reported_, num_dropped_);
    const std::string line = lines_.front();
    writing_ = true;
    lock.unlock();
    const bool written = (missing == 0 || put(of_dropped_(missing))) && put(line);
    lock.lock();
    writing_ = false;
    bytes_ -= lines_.front().size();
    lines_.pop_front();
    if (!written) return;
    if (lines_.empty()) changed_.notify_all();
  }
}

// Writes in pieces that a pipe takes without blocking; between them it checks if the destructor's time is over.
bool LogWriter::put(std::string_view text) {
  constexpr int kLookUpMs = 50;
  while (!text.empty()) {
    pollfd ready{descriptor_, POLLOUT, 0};
    const int found = poll(&ready, 1, kLookUpMs);
    if (found > 0) {
      const ssize_t bytes = ::write(descriptor_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
      if (bytes > 0) {
        text.remove_prefix(static_cast<std::size_t>(bytes));
        continue;
      }
      if (bytes < 0 && errno != EINTR && errno != EAGAIN) return true;  // the reader is gone: the line is dropped
    }
    const std::lock_guard lock(mutex_);
    if (stopping_ && std::chrono::steady_clock::now() >= give_up_at_) return false;
  }
  return true;
}

}  // namespace quire
