#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/start_error.h"

namespace quire::hub {

FileLock::FileLock(std::filesystem::path path) : path_(std::move(path)) {}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

bool FileLock::take(const std::stop_token& stop, const std::function<void()>& on_wait) {
  constexpr mode_t kForTheGroup = 0664;
  bool waits = false;
  while (!stop.stop_requested()) {
    int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kForTheGroup);
    const bool is_new = file >= 0;
    if (file < 0 && errno == EEXIST) file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForTheGroup);
    if (file < 0) {
      throw StartError(path_.string() + ": " + std::generic_category().message(errno) +
                       "; --download-dir or HF_HUB_CACHE chooses another place for models");
    }
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) {
      // The last holder may have removed the file: a lock on a file that nobody else can open is useless.
      struct stat held {};
      struct stat named {};
      const bool same = ::fstat(file, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                        held.st_ino == named.st_ino && held.st_dev == named.st_dev;
      if (same) {
        file_ = file;
        return true;
      }
      ::close(file);
      continue;
    }
    const int error = errno;
    ::close(file);
    if (error != EWOULDBLOCK && error != EINTR) {  // no locks here: is_locked() says so
      // Other programs take the file itself for the lock where there are no others.
      if (is_new) ::unlink(path_.c_str());
      return true;
    }
    if (!std::exchange(waits, true)) on_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace quire::hub
