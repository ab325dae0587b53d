// The bytes of one connection: of a TCP or unix socket, as they are or under TLS.
// Owner   Session.
// Thread  its io thread. One read and one write at a time; read_some() and the waits beside both.
// Fails   error codes as a socket's: eof when the client has closed its side, would_block from read_some() alone,
//         operation_aborted after cancel().
// Source  OpenSSL works on the socket itself and says what it waits for; whoever owns the process ignores SIGPIPE.
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

  // First of all. The kernel holds at most about so much of what the client does not read.
  void open(int send_buffer_bytes);

  // Where it comes from, as budgets tell clients apart: an address, of IPv6 the first 64 bits, or "unix". After open().
  const std::string& peer() const { return peer_; }

  // The handshake. kPlainHttp: the client knows nothing of TLS, and what is written from now on it can read.
  enum class Greeting : std::uint8_t { kDone, kPlainHttp, kFailed };
  Task<Greeting> secure(std::shared_ptr<const TlsContext> tls);

  Task<Read> read(boost::asio::mutable_buffer space);  // at least one byte
  std::size_t read_some(boost::asio::mutable_buffer space, ErrorCode& error);
  Task<ErrorCode> write(std::string_view first, std::string_view second);  // both, in one go

  // Calls once: there may be something to read; or the client cannot be reached.
  void when_readable(std::function<void(ErrorCode)> then);
  void when_broken(std::function<void(ErrorCode)> then);
  void cancel();

  void end_writing();  // the client reads our end, and may go on sending
  void close();

 private:
  // What a call of OpenSSL came to; with would_block, what must come before the next.
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
  SslPtr ssl_;           // null: as they are
  bool silent_ = false;  // TLS has failed or said its last: it must not speak again
};

}  // namespace quire::api::http
