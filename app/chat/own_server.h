// A server of this program for one conversation: `quire serve` as a child process on a unix socket.
// Owner   the command. The destructor ends the server; it ends, too, if this process dies.
// Thread  main; made before any other thread.
// Fails   StartError if no process or directory can be made.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace quire::app {

class OwnServer {
 public:
  // args: of `quire serve`, its model included. Progress and errors go to this process's standard error.
  explicit OwnServer(const std::vector<std::string>& args);
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  const std::string& socket() const { return socket_; }
  // False once it has ended, with exit_code() as the shell has it.
  bool runs();
  int exit_code() const { return exit_code_; }

 private:
  std::string directory_;
  std::string socket_;
  pid_t pid_ = -1;  // -1: it has ended
  int exit_code_ = 0;
};

}  // namespace quire::app
