#include "api/http/waiting_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "api/http/transport/connection.h"
#include "api/wire/errors.h"
#include "api/wire/response_head.h"
#include "core/base/log.h"
#include "core/concurrent/worker_pool.h"

namespace quire::api::http {
namespace {

namespace asio = boost::asio;

constexpr int kSendBuffer = 64 << 10;
constexpr std::size_t kMaxConnections = 256;  // of each socket; one more is closed
constexpr int kRetryAfter = 1;                // seconds
constexpr auto kPauseBetweenTries = std::chrono::milliseconds(100);
constexpr auto kGrace = std::chrono::milliseconds(500);  // for answers that have begun
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// The path of a request's first line.
std::string_view target_path(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\r'));
  const std::size_t blank = line.find(' ');
  if (blank == line.npos) return {};
  std::string_view target = line.substr(blank + 1);
  target = target.substr(0, target.find_first_of(" ?"));
  if (target.starts_with('/')) return target;
  const std::size_t host = target.find("://");  // the absolute form
  const std::size_t slash = host == target.npos ? host : target.find('/', host + 3);
  return slash == target.npos ? std::string_view() : target.substr(slash);
}

}  // namespace

class WaitingRoom::State {
 public:
  explicit State(const ServerConfig& config)
      : limits_(config.limits),
        clients_(context_, Place{config.host, config.port, "--host", "--port", config.uds}),
        tls_(config.tls) {
    port_ = clients_.bind();
    if (config.admin_port) {
      admins_.emplace(context_, Place{config.admin_host, *config.admin_port, "--admin-host", "--admin-port"});
      admins_->bind();
    }
    accept_from(clients_, tls_, num_clients_);
    if (admins_) accept_from(*admins_, nullptr, num_admins_);
    runner_ = std::make_unique<concurrent::WorkerPool>(1, std::numeric_limits<std::size_t>::max());
    runner_->post(0, [this] { context_.run(); });
  }

  ~State() { context_.stop(); }

  std::uint16_t port() const { return port_; }

  void show(std::string status, std::optional<double> progress) {
    asio::post(context_, [this, status = std::move(status), progress] {
      status_ = status;
      progress_ = progress;
    });
  }

  Doors leave() {
    Doors doors;
    asio::post(context_, [&] {
      doors.clients = clients_.give_away();
      if (admins_) doors.admins = admins_->give_away();
      has_left_ = true;
      end_if_empty();
      grace_.expires_after(kGrace);
      grace_.async_wait([this](boost::system::error_code) { context_.stop(); });
    });
    runner_.reset();  // joins
    return doors;
  }

 private:
  void accept_from(ListeningSocket& socket, const std::shared_ptr<const TlsContext>& tls, std::size_t& count) {
    asio::co_spawn(context_, accept(socket, tls, count), [](const std::exception_ptr& failure) {
      if (failure) log_error("listener_failed", "no probe is answered until the model is loaded");
    });
  }

  asio::awaitable<void> accept(ListeningSocket& socket, std::shared_ptr<const TlsContext> tls, std::size_t& count) {
    asio::steady_timer pause(context_);
    while (!has_left_) {
      auto accepted = co_await socket.acceptor().async_accept(kAwait);
      if (const auto error = std::get<0>(accepted); error) {
        if (error == asio::error::operation_aborted) co_return;
        pause.expires_after(kPauseBetweenTries);
        co_await pause.async_wait(kAwait);
      } else if (count < kMaxConnections) {
        ++count;
        asio::co_spawn(context_, attend(std::move(std::get<1>(accepted)), tls),
                       [this, &count](const std::exception_ptr&) {
                         --count;
                         end_if_empty();
                       });
      }
    }
  }

  asio::awaitable<void> attend(Socket socket, std::shared_ptr<const TlsContext> tls) {
    const auto connection = std::make_shared<Connection>(std::move(socket));
    connection->open(kSendBuffer);
    asio::steady_timer timer(context_);
    close_after(limits_.head_timeout, connection, timer);
    if (tls != nullptr && co_await connection->secure(tls) != Connection::Greeting::kDone) co_return;
    std::string head;
    std::array<char, 4096> piece;
    while (head.find("\r\n\r\n") == head.npos) {
      const Connection::Read read = co_await connection->read(asio::buffer(piece));
      if (read.error || head.size() > limits_.head_bytes) co_return;
      head.append(piece.data(), read.bytes);
    }
    const Response response = answer(target_path(head));
    const std::string its_head =
        response_head(response, {.request_id = {}, .keep_alive = false, .body_bytes = response.body.size()});
    co_await connection->write(its_head, head.starts_with("HEAD ") ? std::string_view() : response.body);
    connection->end_writing();
    // Reading on, so that no reset discards the answer.
    close_after(limits_.linger_timeout, connection, timer);
    while (!(co_await connection->read(asio::buffer(piece))).error) {
    }
  }

  static void close_after(Duration time, const std::shared_ptr<Connection>& connection, asio::steady_timer& timer) {
    timer.expires_after(time);
    timer.async_wait([weak = std::weak_ptr(connection)](boost::system::error_code error) {
      const auto open = weak.lock();
      if (!error && open) open->close();
    });
  }

  Response answer(std::string_view path) {
    if (path == "/live") {
      Response response;
      response.body = R"({"status":"alive"})";
      return response;
    }
    const std::string progress = progress_ ? fmt::format("{:.2f}", *progress_) : "";
    const bool is_anthropics = path.starts_with("/v1/messages");
    Response response = error_response(Error{Code::kUnavailable,
                                             fmt::format("the model is not served yet: {}{}", status_,
                                                         progress_ ? fmt::format(", {:.0f} %", 100 * *progress_) : ""),
                                             "", kRetryAfter},
                                       is_anthropics ? ErrorShape::kAnthropic : ErrorShape::kOpenAi);
    constexpr std::string_view kProbes[] = {"/health", "/ready", "/startup", "/ping"};
    if (std::ranges::find(kProbes, path) != std::end(kProbes)) {
      response.body = fmt::format(R"({{"status":"{}"{}}})", status_, progress_ ? R"(,"progress":)" + progress : "");
    }
    return response;
  }

  void end_if_empty() {
    if (has_left_ && num_clients_ + num_admins_ == 0) context_.stop();
  }

  const ConnectionLimits limits_;
  asio::io_context context_{1};
  ListeningSocket clients_;
  std::optional<ListeningSocket> admins_;
  const std::shared_ptr<const TlsContext> tls_;
  std::uint16_t port_ = 0;
  asio::steady_timer grace_{context_};
  std::size_t num_clients_ = 0;  // connections of each socket, so that neither keeps the other from being answered
  std::size_t num_admins_ = 0;
  bool has_left_ = false;
  std::string status_ = "loading";
  std::optional<double> progress_;
  std::unique_ptr<concurrent::WorkerPool> runner_;  // last: its thread uses all of the above
};

WaitingRoom::WaitingRoom(const ServerConfig& config) : state_(std::make_unique<State>(config)) {}
WaitingRoom::~WaitingRoom() = default;

std::uint16_t WaitingRoom::port() const { return state_->port(); }
void WaitingRoom::show(std::string status, std::optional<double> progress) {
  state_->show(std::move(status), progress);
}
Doors WaitingRoom::leave() { return state_->leave(); }

}  // namespace quire::api::http
