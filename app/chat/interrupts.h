// Signals as something to wait for: SIGINT (Ctrl-C), SIGTERM and SIGHUP make a file descriptor readable instead of
// ending the process.
// Owner   the command; one per process.
// Thread  main.
#pragma once

namespace quire::app {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // as before
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  int fd() const;  // readable from a signal until take()
  bool take();     // true: there was one since the last call

  int end_signal() const;  // SIGTERM or SIGHUP if one came: the process is to end; else 0
};

}  // namespace quire::app
