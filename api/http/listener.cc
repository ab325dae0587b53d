#include "api/http/listener.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <string>
#include <utility>

#include "api/http/response_head.h"
#include "api/http/session.h"
#include "api/openai/errors.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::api::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 4096;
constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(100);

tcp::endpoint endpoint_of(const ServerConfig& config) {
  error_code error;
  const auto address = asio::ip::make_address(config.host == "localhost" ? "127.0.0.1" : config.host, error);
  if (error) {
    throw StartError("cannot listen on '" + config.host +
                     "': --host takes an IP address (127.0.0.1, 0.0.0.0, ::) or localhost");
  }
  return {address, config.port};
}

[[noreturn]] void cannot_listen(const ServerConfig& config, const error_code& error) {
  std::string advice = error.message();
  const std::string port = std::to_string(config.port);
  if (error == asio::error::address_in_use) {
    advice =
        "the port is taken; choose another with --port N (0: any free one), or end who has it (ss -ltnp 'sport = :" +
        port + "' names it)";
  } else if (error == asio::error::access_denied) {
    advice = "ports below 1024 need privileges; choose another with --port N";
  }
  throw StartError("cannot listen on " + config.host + ":" + port + ": " + advice);
}

// One write, as far as the socket takes it at once: whoever comes now is one too many to wait for.
void turn_away(tcp::socket socket) {
  const Response response = openai::error_response(
      Error{Code::kUnavailable, "the server has as many connections as it takes; try again later", "", 1});
  std::string bytes =
      response_head(response, {.request_id = {}, .keep_alive = false, .body_bytes = response.body.size()});
  bytes += response.body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(bytes), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

}  // namespace

Listener::Listener(std::vector<std::unique_ptr<IoThread>>& threads)
    : threads_(threads), acceptor_(*threads.front()->context), pause_(*threads.front()->context) {}

std::uint16_t Listener::bind() {
  const ServerConfig& config = threads_.front()->config;
  const tcp::endpoint endpoint = endpoint_of(config);
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kBacklog, error);
  if (error) cannot_listen(config, error);
  return acceptor_.local_endpoint().port();
}

void Listener::start() {
  asio::co_spawn(*threads_.front()->context, accept(), [](const std::exception_ptr& failure) { CHECK(!failure); });
}

void Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

asio::awaitable<void> Listener::accept() {
  while (acceptor_.is_open()) {
    IoThread& io = *threads_[next_++ % threads_.size()];
    auto accepted = co_await acceptor_.async_accept(asio::any_io_executor(io.context->get_executor()),
                                                    asio::as_tuple(asio::use_awaitable));
    const error_code error = std::get<0>(accepted);
    if (!error) {
      take(io, std::move(std::get<1>(accepted)));
    } else if (error != asio::error::operation_aborted) {
      // Out of descriptors, most of all. The connection stays in the backlog until one is free again.
      pause_.expires_after(kPauseWithoutDescriptors);
      co_await pause_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }
}

void Listener::take(IoThread& io, tcp::socket socket) {
  std::optional<bridge::Gate::Holder> place = io.connections.enter();
  if (!place || io.connections.inside() > io.config.max_connections) return turn_away(std::move(socket));
  io.services.metrics.open_connections.set(io.connections.inside());
  auto session = std::make_shared<Session>(io, std::move(socket), std::move(*place));
  asio::post(*io.context, [session = std::move(session)] { session->start(); });
}

}  // namespace quire::api::http
