#include "api/http/server.h"

#include <boost/asio/post.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "api/http/io_thread.h"
#include "api/http/listener.h"
#include "core/base/check.h"
#include "core/concurrent/gate.h"
#include "core/concurrent/worker_pool.h"

namespace quire::api::http {

namespace asio = boost::asio;

namespace {

// Connections of probes, scrapes and operators.
constexpr std::uint32_t kAdminConnections = 64;
constexpr std::uint32_t kAdminStreams = 64;  // unused: admin orders are answered at their end, without token streams

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

Surface clients_surface(const ServerConfig& config) {
  return config.admin_port ? Surface::kClients : Surface::kEverything;
}

}  // namespace

// The io threads and listeners of a server. Io threads communicate by posting: no two of them touch the same state.
class Server::State {
 public:
  State(ServerConfig config, Services services)
      : config_(std::move(config)),
        services_(std::move(services)),
        clients_{clients_surface(config_), config_.max_connections, config_.max_streams, config_.tls,
                 config_.uds.empty() && is_loopback(config_.host)},
        admins_{Surface::kAdmin, kAdminConnections, kAdminStreams, nullptr, is_loopback(config_.admin_host)} {
    CHECK_GE(config_.io_threads, 1u);
    for (std::uint32_t i = 0; i < config_.io_threads; ++i) threads_.push_back(make_thread(clients_));
    listener_ =
        std::make_unique<Listener>(threads_, Place{config_.host, config_.port, "--host", "--port", config_.uds});
    if (!config_.admin_port) return;
    admin_threads_.push_back(make_thread(admins_));
    admin_listener_ = std::make_unique<Listener>(
        admin_threads_, Place{config_.admin_host, *config_.admin_port, "--admin-host", "--admin-port"});
  }

  ~State() {
    if (!runners_) return;
    stop();
    wait();
  }

  void start() {
    port_ = listener_->bind();
    if (admin_listener_) admin_port_ = admin_listener_->bind();
    serve();
  }

  void start(Doors doors) {
    CHECK_EQ(doors.admins.has_value(), admin_listener_ != nullptr);
    port_ = listener_->adopt(std::move(doors.clients));
    if (admin_listener_) admin_port_ = admin_listener_->adopt(std::move(*doors.admins));
    serve();
  }

  void serve() {
    listener_->start();
    if (admin_listener_) admin_listener_->start();
    const auto num_threads = static_cast<std::uint32_t>(threads_.size() + admin_threads_.size());
    runners_ = std::make_unique<concurrent::WorkerPool>(num_threads, std::numeric_limits<std::size_t>::max());
    each([this](IoThread& io) { runners_->post(0, [&io] { io.run(); }); });
  }

  std::uint16_t port() const { return port_; }
  std::uint16_t admin_port() const { return admin_port_; }

  void set_ready(bool ready) {
    on_each([ready](IoThread& io) {
      if (!io.serving.draining) io.serving.ready = ready;
    });
  }

  void renew_tls(const std::shared_ptr<const TlsContext>& tls) {
    CHECK(config_.tls != nullptr && tls != nullptr);
    on_each([tls](IoThread& io) {
      if (io.entrance.tls != nullptr) io.tls = tls;
    });
  }

  void drain() {
    on_each([](IoThread& io) { io.begin_drain(); });
    services_.queue.close();
  }

  void stop() {
    services_.queue.close();
    asio::post(*threads_.front()->context, [this] { stop_all(); });
  }

  bool wait() {
    runners_.reset();  // joins
    bool whole = true;
    each([&whole](const IoThread& io) { whole = whole && !io.cut(); });
    return whole;
  }

 private:
  std::unique_ptr<IoThread> make_thread(Entrance& entrance) {
    return std::make_unique<IoThread>(services_, config_, entrance,
                                      [this] { asio::post(*threads_.front()->context, [this] { note_idle(); }); });
  }

  template <typename Action>
  void each(Action action) {
    for (const auto& io : threads_) action(*io);
    for (const auto& io : admin_threads_) action(*io);
  }
  template <typename Action>
  void on_each(Action action) {
    each([&action](IoThread& io) { asio::post(*io.context, [&io, action] { action(io); }); });
  }

  // ---- on the first io thread
  void note_idle() {
    if (++num_idle_ == threads_.size() + admin_threads_.size()) stop_all();
  }
  void stop_all() {
    listener_->close();
    if (admin_listener_) asio::post(*admin_threads_.front()->context, [this] { admin_listener_->close(); });
    on_each([](IoThread& io) { io.begin_stop(); });
  }

  const ServerConfig config_;
  const Services services_;
  Entrance clients_;
  Entrance admins_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::vector<std::unique_ptr<IoThread>> admin_threads_;  // none or one
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Listener> admin_listener_;
  std::size_t num_idle_ = 0;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
  std::unique_ptr<concurrent::WorkerPool> runners_;  // last: its threads use all of the above
};

Server::Server(ServerConfig config, Services services)
    : state_(std::make_unique<State>(std::move(config), std::move(services))) {}
Server::~Server() = default;

void Server::start() { state_->start(); }
void Server::start(Doors doors) { state_->start(std::move(doors)); }
std::uint16_t Server::port() const { return state_->port(); }
std::uint16_t Server::admin_port() const { return state_->admin_port(); }
void Server::set_ready(bool ready) { state_->set_ready(ready); }
void Server::renew_tls(const std::shared_ptr<const TlsContext>& tls) { state_->renew_tls(tls); }
void Server::drain() { state_->drain(); }
void Server::stop() { state_->stop(); }
bool Server::wait() { return state_->wait(); }

}  // namespace quire::api::http
