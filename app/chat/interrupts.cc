#include "app/chat/interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

int the_pipe[2] = {-1, -1};
volatile std::sig_atomic_t the_end_signal = 0;

void on_signal(int signal) {
  const int before = errno;
  if (signal != SIGINT) the_end_signal = signal;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(the_pipe[1], &byte, 1);  // a full pipe has said it already
  errno = before;
}

}  // namespace

Interrupts::Interrupts() {
  if (pipe2(the_pipe, O_CLOEXEC | O_NONBLOCK) != 0) throw StartError("no pipe can be made: too many files are open");
  struct sigaction action {};
  action.sa_handler = &on_signal;  // without SA_RESTART: the line editor's read ends
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

Interrupts::~Interrupts() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  close(the_pipe[0]);
  close(the_pipe[1]);
}

int Interrupts::fd() const { return the_pipe[0]; }

int Interrupts::end_signal() const { return the_end_signal; }

bool Interrupts::take() {
  char bytes[64];
  bool any = false;
  while (read(the_pipe[0], bytes, sizeof bytes) > 0) any = true;
  return any;
}

}  // namespace quire::app
