// An exclusive lock on a file, as other programs take it for a blob of the cache: flock(2) on HASH.lock.
// Owner   the caller; the destructor unlocks. The file stays, unless another program removes it.
// Thread  one; take() blocks until it has the lock or `stop` asks to stop.
// Fails   take(): false if stopped. is_locked() is false afterwards where the file system knows no locks.
// Source  flock(2); filelock's UnixFileLock.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>

namespace quire::hub {

class FileLock {
 public:
  explicit FileLock(std::filesystem::path path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // `on_wait` is called once if another process holds the lock.
  bool take(const std::stop_token& stop, const std::function<void()>& on_wait);
  bool is_locked() const { return file_ >= 0; }

 private:
  const std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace quire::hub
