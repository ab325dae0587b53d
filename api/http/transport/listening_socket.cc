#include "api/http/transport/listening_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/start_error.h"

namespace quire::api::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

constexpr int kBacklog = 4096;
constexpr mode_t kFileMode = 0660;
constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un{}.sun_path) - 1;

tcp::endpoint endpoint_of(const Place& place) {
  error_code error;
  const auto address = asio::ip::make_address(place.host == "localhost" ? "127.0.0.1" : place.host, error);
  if (error) {
    throw StartError("cannot listen on '" + place.host + "': " + place.host_flag +
                     " must be an IP address (127.0.0.1, 0.0.0.0, ::) or localhost");
  }
  return {address, place.port};
}

[[noreturn]] void cannot_listen(const Place& place, const error_code& error) {
  std::string advice = error.message();
  const std::string port = std::to_string(place.port);
  const std::string flag = place.port_flag;
  if (error == asio::error::address_in_use) {
    advice = "the port is taken; choose another with " + flag +
             " N (0: any free one), or stop the process that uses it (ss -ltnp 'sport = :" + port + "' names it)";
  } else if (error == asio::error::access_denied) {
    advice = "ports below 1024 need privileges; choose another with " + flag + " N";
  }
  throw StartError("cannot listen on " + place.host + ":" + port + ": " + advice);
}

[[noreturn]] void cannot_listen(const std::string& path, const std::string& why) {
  throw StartError("--uds " + path + ": " + why);
}

}  // namespace

BoundSocket::BoundSocket(BoundSocket&& other) noexcept { *this = std::move(other); }

BoundSocket& BoundSocket::operator=(BoundSocket&& other) noexcept {
  std::swap(handle_, other.handle_);
  family_ = other.family_;
  port_ = other.port_;
  has_file_ = other.has_file_;
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

BoundSocket::~BoundSocket() {
  if (handle_ >= 0) ::close(handle_);
}

ListeningSocket::ListeningSocket(asio::io_context& context, Place place)
    : place_(std::move(place)), acceptor_(context) {}

ListeningSocket::~ListeningSocket() { close(); }

std::uint16_t ListeningSocket::bind() {
  if (!place_.uds.empty()) {
    bind_file();
  } else {
    port_ = bind_port();
  }
  return port_;
}

std::uint16_t ListeningSocket::adopt(BoundSocket socket) {
  acceptor_.assign(asio::generic::stream_protocol(socket.family_, 0), std::exchange(socket.handle_, -1));
  port_ = socket.port_;
  has_file_ = socket.has_file_;
  device_ = socket.device_;
  inode_ = socket.inode_;
  return port_;
}

BoundSocket ListeningSocket::give_away() {
  BoundSocket socket;
  socket.family_ = place_.uds.empty() ? endpoint_of(place_).protocol().family() : AF_UNIX;
  socket.handle_ = acceptor_.release();
  socket.port_ = port_;
  socket.has_file_ = std::exchange(has_file_, false);
  socket.device_ = device_;
  socket.inode_ = inode_;
  return socket;
}

std::uint16_t ListeningSocket::bind_port() {
  const tcp::endpoint wanted = endpoint_of(place_);
  error_code error;
  acceptor_.open(wanted.protocol(), error);
  if (!error) acceptor_.set_option(Acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(wanted, error);
  if (!error) acceptor_.listen(kBacklog, error);
  if (error) cannot_listen(place_, error);
  const Acceptor::endpoint_type bound = acceptor_.local_endpoint();
  tcp::endpoint here;
  std::memcpy(here.data(), bound.data(), bound.size());
  return here.port();
}

void ListeningSocket::bind_file() {
  const std::string& path = place_.uds;
  if (path.size() > kMaxPathBytes) {
    cannot_listen(path, "the path of a unix socket may have at most " + std::to_string(kMaxPathBytes) + " bytes");
  }
  replace_stale_file();
  error_code error;
  acceptor_.open(stream_protocol(), error);
  if (!error) acceptor_.bind(stream_protocol::endpoint(path), error);
  if (error) cannot_listen(path, error.message());
  struct stat made {};
  // Clients cannot connect before listen(), so none connects before the mode is set.
  if (chmod(path.c_str(), kFileMode) != 0 || lstat(path.c_str(), &made) != 0) {
    cannot_listen(path, std::strerror(errno));
  }
  has_file_ = true;
  device_ = made.st_dev;
  inode_ = made.st_ino;
  acceptor_.listen(kBacklog, error);
  if (error) cannot_listen(path, error.message());
}

void ListeningSocket::replace_stale_file() {
  const std::string& path = place_.uds;
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) return;  // bind() reports any other fault
  if (!S_ISSOCK(there.st_mode)) cannot_listen(path, "a file is there that is not a socket; choose another path");
  stream_protocol::socket visitor(acceptor_.get_executor());
  error_code error;
  visitor.connect(stream_protocol::endpoint(path), error);
  if (!error) cannot_listen(path, "a process listens there; stop it (ss -lxp names it), or choose another path");
  if (error != asio::error::connection_refused) cannot_listen(path, "a socket is there: " + error.message());
  if (unlink(path.c_str()) != 0) {
    cannot_listen(path, std::string("a socket is there that cannot be removed: ") + std::strerror(errno));
  }
}

void ListeningSocket::close() {
  error_code ignored;
  acceptor_.close(ignored);
  struct stat there {};
  if (!std::exchange(has_file_, false) || lstat(place_.uds.c_str(), &there) != 0) return;
  if (there.st_dev == device_ && there.st_ino == inode_) unlink(place_.uds.c_str());
}

}  // namespace quire::api::http
