#include "app/chat/own_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr int kNotStarted = 127;
constexpr useconds_t kPauseMicros = 10'000;
constexpr int kPatience = 500;  // pauses until a server that is told to end is killed

// A new directory that only this user may enter.
std::string private_directory() {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  std::string path = std::string(base != nullptr && *base == '/' ? base : "/tmp") + "/quire-chat-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    path = "/tmp/quire-chat-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw StartError("no directory for the server's socket can be made in /tmp");
  }
  return path;
}

[[noreturn]] void become_server(const std::vector<char*>& words, pid_t parent) {
  setpgid(0, 0);  // Ctrl-C is for the conversation
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotStarted);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  for (const char* of_others : {"QUIRE_TLS_CERT", "QUIRE_TLS_KEY", "QUIRE_ADMIN_PORT"}) unsetenv(of_others);
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0) _exit(kNotStarted);
  execv("/proc/self/exe", words.data());
  _exit(kNotStarted);
}

}  // namespace

OwnServer::OwnServer(const std::vector<std::string>& args)
    : directory_(private_directory()), socket_(directory_ + "/socket") {
  std::vector<std::string> texts = {"quire", "serve"};
  texts.insert(texts.end(), args.begin(), args.end());
  texts.push_back("--uds=" + socket_);
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become_server(words, parent);
  if (pid_ < 0) throw StartError("no process for the server can be made");
}

OwnServer::~OwnServer() {
  if (runs()) {
    kill(pid_, SIGTERM);  // nobody waits for its answers, so there is nothing to drain
    for (int i = 0; i < kPatience && runs(); ++i) usleep(kPauseMicros);
    if (pid_ >= 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

bool OwnServer::runs() {
  int status = 0;
  if (pid_ < 0) return false;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  pid_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

}  // namespace quire::app
