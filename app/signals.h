// SIGTERM and SIGINT as a request to end: the first calls `on_first`, the second ends the process at once with 128 + its
// number. Without an on_first there is nothing to finish, and the first ends the process. SIGHUP means to read files again;
// without an on_reload it ends the process, too.
// Shape   made before any other thread, which all inherit the blocked signals; one thread of its own waits for them.
// Owner   the command; one in a process.
// Thread  main; the callback runs on the signals' own thread.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace quire::app {

class Signals {
 public:
  // `on_reload`: from the first moment on. None: see above.
  explicit Signals(std::function<void()> on_reload = nullptr);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // On return no earlier callback runs any more. The callback must not block.
  void on_first(std::function<void(int signal)> callback);
  void on_reload(std::function<void()> callback);  // likewise; each time

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
