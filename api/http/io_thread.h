// State that the sessions of one io thread share: its io_context, its token streams, and the state of the server.
// Owner   Server::State. The context is shared with those that may still post to it: the engine's hub, a worker.
// Thread  the context's, except for posting to `context`.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

#include "api/admin/health.h"
#include "api/http/server.h"
#include "api/routes/router.h"
#include "api/services/services.h"
#include "core/bridge/stream_hub.h"
#include "core/concurrent/gate.h"

namespace quire::api::http {

class Session;

// State that a listener and its io threads share.
struct Entrance {
  Surface surface;
  std::uint32_t max_connections;
  std::uint32_t max_streams;
  std::shared_ptr<const TlsContext> tls{};  // the first one (IoThread::tls is renewed); null: never TLS
  bool at_loopback = false;                 // only this machine can reach the port
  concurrent::Gate connections{};
};

class IoThread {
 public:
  // `services`, `config` and `entrance` outlive the io thread.
  IoThread(const Services& services, const ServerConfig& config, Entrance& entrance, std::function<void()> on_idle);

  void run();                        // the thread's function: returns when stopped, and nothing is left to run
  void begin_drain();                // `on_idle` is called once, when no answer is under way any more
  void begin_stop();                 // ends answers under way with an error and closes idle connections
  bool cut() const { return cut_; }  // an answer was cut short; read after run() has returned

  void enter(Session& session) { sessions_.insert(&session); }
  void leave(Session& session);
  // Sets the metric of open connections, not counting `leaving` that are about to close.
  void report_connections(std::uint32_t leaving = 0) const;
  bool stopping() const { return stopping_; }

  // Counts one answer under way.
  class AnswerScope {
   public:
    explicit AnswerScope(IoThread& io) : io_(io) { ++io_.num_answers_; }
    ~AnswerScope() {
      --io_.num_answers_;
      io_.report_idle();
    }
    AnswerScope(const AnswerScope&) = delete;
    AnswerScope& operator=(const AnswerScope&) = delete;

   private:
    IoThread& io_;
  };

  const Services& services;
  const ServerConfig& config;
  Entrance& entrance;
  const std::shared_ptr<boost::asio::io_context> context;
  const std::shared_ptr<bridge::StreamHub> hub;
  admin::Serving serving;
  std::shared_ptr<const TlsContext> tls;  // of connections that begin now

 private:
  bool run_slices();
  void report_idle();
  void cut_answers();

  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  boost::asio::steady_timer drain_timer_;
  std::function<void()> on_idle_;  // empty once called
  std::unordered_set<Session*> sessions_;
  std::size_t num_answers_ = 0;
  bool stopping_ = false;
  bool cut_ = false;
};

}  // namespace quire::api::http
