#include "app/process/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

Signals::Signals(std::function<void()> on_reload) : reload_(std::move(on_reload)) {
  const sigset_t set = handled_signals();
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  CHECK(signal_fd_ >= 0 && stop_fd_ >= 0);
  thread_ = std::thread([this] { wait(); });
}

Signals::~Signals() {
  CHECK_EQ(eventfd_write(stop_fd_, 1), 0);
  thread_.join();
  close(signal_fd_);
  close(stop_fd_);
}

void Signals::on_first(std::function<void(int)> callback) {
  const std::lock_guard lock(mutex_);
  callback_ = std::move(callback);
}

void Signals::on_reload(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  reload_ = std::move(callback);
}

void Signals::wait() {
  for (;;) {
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;  // interrupted
    if (fds[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signal_fd_, &info, sizeof info) != sizeof info) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    const std::lock_guard lock(mutex_);
    if (signal == SIGHUP && reload_) {
      reload_();
      continue;
    }
    const std::function<void(int)> callback = std::exchange(callback_, nullptr);
    if (!callback) {
      log_warn("ended_by_signal", {{"signal", signal}});
      flush_log();
      _exit(128 + signal);
    }
    callback(signal);
  }
}

}  // namespace quire::app
