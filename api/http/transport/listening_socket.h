// The socket that a listener accepts from: a TCP port, or the file of a unix socket. Accepted sockets have one type, so
// that other code need not tell the two apart.
// Owner   Listener. The file of a unix socket (mode 0660) is removed on close, unless another file has replaced it.
// Thread  bind(): the owner's, before the io thread runs; then the io thread of `context`.
// Fails   bind(): StartError whose text says what to do. A socket file that a dead server left is replaced; one that a
//         process listens on is not, nor is a file that is no socket.
#pragma once

#include <sys/types.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

namespace quire::api::http {

using Socket = boost::asio::generic::stream_protocol::socket;
using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

// The address to listen on, and the names of the flags that set it.
struct Place {
  std::string host;
  std::uint16_t port;  // 0: any free one
  const char* host_flag;
  const char* port_flag;
  std::string uds{};  // path of a unix socket; if set, host and port are not read
};

// A listening socket between two owners. Connections that arrive meanwhile wait in the kernel.
class BoundSocket {
 public:
  BoundSocket() = default;
  BoundSocket(BoundSocket&& other) noexcept;
  BoundSocket& operator=(BoundSocket&& other) noexcept;
  ~BoundSocket();

 private:
  friend class ListeningSocket;
  int handle_ = -1;
  int family_ = 0;
  std::uint16_t port_ = 0;
  bool has_file_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

class ListeningSocket {
 public:
  ListeningSocket(boost::asio::io_context& context, Place place);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  std::uint16_t bind();  // returns the port; 0 for a unix socket
  // Instead of bind(), with the socket that another object of the same place gave away.
  std::uint16_t adopt(BoundSocket socket);
  BoundSocket give_away();  // this object listens no more
  void close();
  Acceptor& acceptor() { return acceptor_; }

 private:
  std::uint16_t bind_port();
  void bind_file();
  void replace_stale_file();

  const Place place_;
  Acceptor acceptor_;
  std::uint16_t port_ = 0;
  bool has_file_ = false;
  dev_t device_ = 0;  // device and inode of the file that bind() made
  ino_t inode_ = 0;
};

}  // namespace quire::api::http
