// Signal handling. The first SIGTERM or SIGINT calls `on_first`; the second ends the process at once with 128 + its
// number, as the first does while there is no on_first. SIGHUP calls `on_reload`; without one it counts as SIGTERM.
// Shape   made before any other thread, so that all inherit the blocked signals; its own thread waits for them.
// Owner   the command; one per process.
// Thread  main; the callbacks run on the signals' own thread.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace quire::app {

class Signals {
 public:
  // `on_reload` is in force from the first moment on.
  explicit Signals(std::function<void()> on_reload = nullptr);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Replaces the callback. After the return, no earlier callback is running. The callback must not block.
  void on_first(std::function<void(int signal)> callback);
  void on_reload(std::function<void()> callback);  // likewise; called for every SIGHUP

 private:
  void wait();

  int signal_fd_;
  int stop_fd_;
  std::mutex mutex_;  // guards both callbacks, and is held while one runs
  std::function<void(int)> callback_;
  std::function<void()> reload_;
  std::thread thread_;
};

}  // namespace quire::app
