#include "api/http/transport/connection.h"

#include <netinet/in.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace quire::api::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

// Name of a client. Of an IPv6 address the first 64 bits: a client may choose the other 64 itself.
std::string name_of(const Socket::endpoint_type& peer) {
  const int family = peer.data()->sa_family;
  if (family == AF_INET) {
    const auto& address = *reinterpret_cast<const sockaddr_in*>(peer.data());
    return asio::ip::address_v4(ntohl(address.sin_addr.s_addr)).to_string();
  }
  if (family != AF_INET6) return "unix";
  asio::ip::address_v6::bytes_type bytes;
  const auto& address = *reinterpret_cast<const sockaddr_in6*>(peer.data());
  std::memcpy(bytes.data(), &address.sin6_addr, bytes.size());
  const asio::ip::address_v6 whole(bytes);
  if (whole.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, whole).to_string();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace

void Connection::open(int send_buffer_bytes) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);  // fails on a unix socket, which has no such option
  socket_.set_option(Socket::send_buffer_size(send_buffer_bytes), ignored);
  socket_.non_blocking(true, ignored);
  peer_ = name_of(socket_.remote_endpoint(ignored));
}

Connection::Task<Connection::Greeting> Connection::secure(std::shared_ptr<const TlsContext> tls) {
  ssl_ = tls->serve(socket_.native_handle());
  for (;;) {
    ERR_clear_error();
    const Step step = step_of(SSL_accept(ssl_.get()));
    if (!step.error) co_return Greeting::kDone;
    if (step.error == asio::error::would_block) {
      const auto waited = co_await socket_.async_wait(step.wants, kToken);
      if (!std::get<0>(waited)) continue;
    } else if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) {
      ssl_.reset();
      co_return Greeting::kPlainHttp;
    }
    silent_ = true;
    co_return Greeting::kFailed;
  }
}

Connection::Task<Connection::Read> Connection::read(asio::mutable_buffer space) {
  if (!ssl_) {
    const auto done = co_await socket_.async_read_some(space, kToken);
    co_return Read{std::get<0>(done), std::get<1>(done)};
  }
  for (;;) {
    Read read;
    const Step step = read_step(space, read.bytes);
    read.error = step.error;
    if (step.error != asio::error::would_block) {
      // Yields between two records, so that a client that sends fast does not hold up others on this thread.
      co_await asio::post(socket_.get_executor(), asio::use_awaitable);
      co_return read;
    }
    const auto waited = co_await socket_.async_wait(step.wants, kToken);
    read.error = std::get<0>(waited);
    if (read.error) co_return read;
  }
}

std::size_t Connection::read_some(asio::mutable_buffer space, error_code& error) {
  if (!ssl_) return socket_.read_some(space, error);
  std::size_t bytes = 0;
  error = read_step(space, bytes).error;
  return bytes;
}

Connection::Task<error_code> Connection::write(std::string_view first, std::string_view second) {
  if (!ssl_) {
    const std::array<asio::const_buffer, 2> buffers{asio::const_buffer(first.data(), first.size()),
                                                    asio::const_buffer(second.data(), second.size())};
    const auto done = co_await asio::async_write(socket_, buffers, kToken);
    co_return std::get<0>(done);
  }
  // Joined, because two calls of OpenSSL would make two TLS records and two packets.
  std::string joined;
  std::string_view whole = first.empty() ? second : first;
  if (!first.empty() && !second.empty()) {
    joined.reserve(first.size() + second.size());
    joined.append(first).append(second);
    whole = joined;
  }
  const error_code error = co_await write_secured(whole);
  co_return error;
}

Connection::Task<error_code> Connection::write_secured(std::string_view rest) {
  while (!rest.empty()) {
    ERR_clear_error();
    std::size_t bytes = 0;
    const Step step = step_of(SSL_write_ex(ssl_.get(), rest.data(), rest.size(), &bytes));
    rest.remove_prefix(bytes);
    if (step.error == asio::error::would_block) {
      const auto waited = co_await socket_.async_wait(step.wants, kToken);
      if (std::get<0>(waited)) co_return std::get<0>(waited);
    } else if (step.error) {
      co_return step.error;
    }
  }
  co_return error_code();
}

// The socket is not readable for bytes that OpenSSL has already read from it: SSL_pending() counts these.
void Connection::when_readable(std::function<void(ErrorCode)> then) {
  if (ssl_ && SSL_pending(ssl_.get()) > 0) {
    asio::post(socket_.get_executor(), [then = std::move(then)] { then(error_code()); });
  } else {
    socket_.async_wait(Socket::wait_read, std::move(then));
  }
}

void Connection::when_broken(std::function<void(ErrorCode)> then) {
  socket_.async_wait(Socket::wait_error, std::move(then));
}

void Connection::cancel() {
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::end_writing() {
  say_goodbye();
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Connection::close() {
  say_goodbye();
  error_code ignored;
  socket_.close(ignored);
}

void Connection::say_goodbye() {
  if (!ssl_ || std::exchange(silent_, true) || SSL_is_init_finished(ssl_.get()) == 0) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
}

Connection::Step Connection::read_step(asio::mutable_buffer space, std::size_t& bytes) {
  ERR_clear_error();
  return step_of(SSL_read_ex(ssl_.get(), space.data(), space.size(), &bytes));
}

Connection::Step Connection::step_of(int returned) {
  const int system_error = errno;
  Step step;
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_NONE:
      break;
    case SSL_ERROR_WANT_READ:
      step.error = asio::error::would_block;
      break;
    case SSL_ERROR_WANT_WRITE:
      step.error = asio::error::would_block;
      step.wants = Socket::wait_write;
      break;
    case SSL_ERROR_ZERO_RETURN:
      step.error = asio::error::eof;
      break;
    case SSL_ERROR_SYSCALL:
      silent_ = true;
      step.error = error_code(system_error != 0 ? system_error : ECONNRESET, boost::system::system_category());
      break;
    default:
      silent_ = true;
      step.error = make_error_code(boost::system::errc::protocol_error);
      break;
  }
  return step;
}

}  // namespace quire::api::http
