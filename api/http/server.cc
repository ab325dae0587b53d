#include "api/http/server.h"

#include <boost/asio/post.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "api/http/io_thread.h"
#include "api/http/listener.h"
#include "core/base/check.h"
#include "core/bridge/gate.h"
#include "core/bridge/worker_pool.h"

namespace quire::api::http {

namespace asio = boost::asio;

// The io threads tell each other things by posting; there is no state that two of them touch.
class Server::State {
 public:
  State(ServerConfig config, Services services) : config_(std::move(config)), services_(std::move(services)) {
    CHECK_GE(config_.io_threads, 1u);
    CHECK(!services_.model_names.empty());
    for (std::uint32_t i = 0; i < config_.io_threads; ++i) {
      threads_.push_back(std::make_unique<IoThread>(services_, config_, connections_, [this] {
        asio::post(*threads_.front()->context, [this] { note_idle(); });
      }));
    }
    listener_ = std::make_unique<Listener>(threads_);
  }

  ~State() {
    if (!runners_) return;
    stop();
    wait();
  }

  void start() {
    port_ = listener_->bind();
    listener_->start();
    runners_ = std::make_unique<bridge::WorkerPool>(config_.io_threads, std::numeric_limits<std::size_t>::max());
    for (const auto& io : threads_) runners_->post(0, [&io = *io] { io.run(); });
  }

  std::uint16_t port() const { return port_; }

  void set_ready(bool ready) {
    on_each([ready](IoThread& io) {
      if (!io.serving.draining) io.serving.ready = ready;
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
    for (const auto& io : threads_) whole = whole && !io->cut();
    return whole;
  }

 private:
  template <typename Action>
  void on_each(Action action) {
    for (const auto& io : threads_) asio::post(*io->context, [&io = *io, action] { action(io); });
  }

  // ---- on the first io thread
  void note_idle() {
    if (++num_idle_ == threads_.size()) stop_all();
  }
  void stop_all() {
    listener_->close();
    on_each([](IoThread& io) { io.begin_stop(); });
  }

  const ServerConfig config_;
  const Services services_;
  bridge::Gate connections_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::unique_ptr<Listener> listener_;
  std::size_t num_idle_ = 0;
  std::uint16_t port_ = 0;
  std::unique_ptr<bridge::WorkerPool> runners_;  // last: its threads use all of the above
};

Server::Server(ServerConfig config, Services services)
    : state_(std::make_unique<State>(std::move(config), std::move(services))) {}
Server::~Server() = default;

void Server::start() { state_->start(); }
std::uint16_t Server::port() const { return state_->port(); }
void Server::set_ready(bool ready) { state_->set_ready(ready); }
void Server::drain() { state_->drain(); }
void Server::stop() { state_->stop(); }
bool Server::wait() { return state_->wait(); }

}  // namespace quire::api::http
