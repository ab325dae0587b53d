// What the sessions of one io thread share: its context, its token streams, and what they know of the server.
// Owner   Server::State. The context is shared with whoever may still wake it: the engine's hub, a worker.
// Thread  everything is for the context's thread, but posting to `context`.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

#include "api/admin/health.h"
#include "api/http/router.h"
#include "api/http/server.h"
#include "api/services.h"
#include "core/bridge/gate.h"
#include "core/bridge/stream_hub.h"

namespace quire::api::http {

class Session;

// What a listener and its io threads have in common.
struct Entrance {
  Surface surface;
  std::uint32_t max_connections;
  std::uint32_t max_streams;
  std::shared_ptr<const TlsContext> tls{};  // to begin with; null: none, and there never is one
  bool at_loopback = false;                 // this machine alone can reach it
  bridge::Gate connections{};
};

class IoThread {
 public:
  // All but `on_idle` outlive it.
  IoThread(const Services& services, const ServerConfig& config, Entrance& entrance, std::function<void()> on_idle);

  void run();                        // until stopped and empty; the thread's whole life
  void begin_drain();                // `on_idle` is called once, when no answer is under way any more
  void begin_stop();                 // answers under way end with an error, idle connections are closed
  bool cut() const { return cut_; }  // some answer was cut short; read after run() has returned

  void enter(Session& session) { sessions_.insert(&session); }
  void leave(Session& session);
  // Tells the metrics how many connections there are, `leaving` of them about to go.
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
  std::shared_ptr<const TlsContext> tls;  // for connections that begin now

 private:
  bool run_turns();
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
