// The byte stream of one connection: a TCP or unix socket, plain or under TLS.
// Owner   Session.
// Thread  its io thread. At most one read and one write at a time; read_some() and the waits may run beside both.
// Fails   error codes of a socket: eof if the client has closed its side, would_block only from read_some(),
//         operation_aborted after cancel().
// Source  OpenSSL works on the socket itself and reports the readiness that it needs; the process must ignore SIGPIPE.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/transport/listening_socket.h"
#include "api/http/transport/tls_context.h"

namespace quire::api::http {

class Connection {
 public:
  using ErrorCode = boost::system::error_code;
  template <typename T>
  using Task = boost::asio::awaitable<T>;
  struct Read {
    ErrorCode error;
    std::size_t bytes = 0;
  };

  explicit Connection(Socket socket) : socket_(std::move(socket)) {}

  // To be called first. The kernel buffers about `send_buffer_bytes` of data that the client does not read.
  void open(int send_buffer_bytes);

  // Name by which budgets tell clients apart: the IPv4 address, the first 64 bits of the IPv6 address, or "unix". Valid
  // after open().
  const std::string& peer() const { return peer_; }

  // The TLS handshake. kPlainHttp: the client sent plain HTTP; later writes are plain, too.
  enum class Greeting : std::uint8_t { kDone, kPlainHttp, kFailed };
  Task<Greeting> secure(std::shared_ptr<const TlsContext> tls);

  Task<Read> read(boost::asio::mutable_buffer space);  // at least one byte
  std::size_t read_some(boost::asio::mutable_buffer space, ErrorCode& error);
  Task<ErrorCode> write(std::string_view first, std::string_view second);  // both, in one write

  // Call `then` once: when there may be data to read; when the connection is broken.
  void when_readable(std::function<void(ErrorCode)> then);
  void when_broken(std::function<void(ErrorCode)> then);
  void cancel();

  void end_writing();  // half-closes: the client reads the end of our data, and may go on sending
  void close();

 private:
  // Result of a call of OpenSSL; with would_block, `wants` is the readiness to await before the next call.
  struct Step {
    ErrorCode error;
    Socket::wait_type wants = Socket::wait_read;
  };
  Step step_of(int returned);
  Step read_step(boost::asio::mutable_buffer space, std::size_t& bytes);
  Task<ErrorCode> write_secured(std::string_view rest);
  void say_goodbye();

  Socket socket_;
  std::string peer_;
  SslPtr ssl_;           // null: plain
  bool silent_ = false;  // TLS has failed or has sent close_notify: SSL_shutdown() must not be called
};

}  // namespace quire::api::http
