#include "api/http/listener.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <string>
#include <utility>

#include "api/http/session.h"
#include "api/wire/errors.h"
#include "api/wire/response_head.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace quire::api::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(100);

// Answers a connection over the limit with 503: one write, as far as the socket takes it at once, without waiting.
void turn_away(Socket socket) {
  const Response response =
      error_response(Error{Code::kUnavailable, "the limit of connections is reached; try again later", "", 1});
  std::string bytes =
      response_head(response, {.request_id = {}, .keep_alive = false, .body_bytes = response.body.size()});
  bytes += response.body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(bytes), ignored);
  socket.shutdown(Socket::shutdown_send, ignored);
}

}  // namespace

Listener::Listener(std::vector<std::unique_ptr<IoThread>>& threads, Place place)
    : threads_(threads), socket_(*threads.front()->context, std::move(place)), pause_(*threads.front()->context) {}

std::uint16_t Listener::bind() { return socket_.bind(); }

std::uint16_t Listener::adopt(BoundSocket socket) { return socket_.adopt(std::move(socket)); }

void Listener::start() {
  asio::co_spawn(*threads_.front()->context, accept(), [this](const std::exception_ptr& failure) {
    if (!failure) return;
    threads_.front()->services.metrics.internal_errors.add();
    log_error("listener_failed", "listening continues");
    if (socket_.acceptor().is_open()) start();
  });
}

void Listener::close() {
  socket_.close();
  pause_.cancel();
}

asio::awaitable<void> Listener::accept() {
  while (socket_.acceptor().is_open()) {
    IoThread& io = *threads_[next_++ % threads_.size()];
    auto accepted = co_await socket_.acceptor().async_accept(asio::any_io_executor(io.context->get_executor()),
                                                             asio::as_tuple(asio::use_awaitable));
    const error_code error = std::get<0>(accepted);
    if (!error) {
      take(io, std::move(std::get<1>(accepted)));
    } else if (error != asio::error::operation_aborted) {
      // Mostly: out of file descriptors. The connection stays in the backlog until a descriptor is free again.
      pause_.expires_after(kPauseWithoutDescriptors);
      co_await pause_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }
}

void Listener::take(IoThread& io, Socket socket) {
  std::optional<concurrent::Gate::Holder> place = io.entrance.connections.enter();
  if (!place || io.entrance.connections.inside() > io.entrance.max_connections) {
    if (io.entrance.tls == nullptr) turn_away(std::move(socket));  // a client that expects TLS could not read it
    return;
  }
  io.report_connections();
  auto session = std::make_shared<Session>(io, std::move(socket), std::move(*place));
  asio::post(*io.context, [session = std::move(session)] { session->start(); });
}

}  // namespace quire::api::http
