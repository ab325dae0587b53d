#include "app/doctor/ports.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <vector>

#include "core/base/log.h"

namespace quire::app::doctor {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// errno of listening there; 0: it is possible.
int try_to_listen(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // as the server does
  const bool listens = ::bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, 1) == 0;
  const int error = listens ? 0 : errno;
  ::close(socket);
  return error;
}

bool holds(const std::filesystem::path& process, const std::vector<std::string>& sockets) {
  std::error_code error;
  for (auto file = std::filesystem::directory_iterator(process / "fd", error);
       !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(file->path(), unreadable).string();
    if (std::ranges::find(sockets, target) != sockets.end()) return true;
  }
  return false;
}

// "python3 (pid 4711)", of the processes that this one may look into.
std::string holder_of(std::uint16_t port) {
  std::vector<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (const std::uint64_t inode : listeners_in(contents(table), port)) {
      sockets.push_back(fmt::format("socket:[{}]", inode));
    }
  }
  if (sockets.empty()) return {};
  std::error_code error;
  for (auto process = std::filesystem::directory_iterator("/proc", error);
       !error && process != std::filesystem::directory_iterator(); process.increment(error)) {
    const std::string pid = process->path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(pid.front())) == 0 || !holds(process->path(), sockets)) continue;
    std::string name = contents(process->path().string() + "/comm");
    if (name.ends_with('\n')) name.pop_back();
    return fmt::format("{} (pid {})", log_safe(name), pid);
  }
  return {};
}

}  // namespace

PortFacts port_facts(const std::string& host, std::uint16_t port) {
  PortFacts facts{.host = host, .port = port};
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    facts.error = EADDRNOTAVAIL;
    return facts;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  facts.error = try_to_listen(*addresses);
  if (facts.error == EADDRINUSE) facts.holder = holder_of(port);
  return facts;
}

}  // namespace quire::app::doctor
