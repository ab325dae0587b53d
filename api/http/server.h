// The HTTP server: listens, runs the io threads, drains and stops.
// Shape   one io_context, one thread and one StreamHub per io thread; a connection stays on the thread that it was
//         given to. An admin port has one more of each to itself, so that it answers however busy the others are.
// Owner   app. Destruction stops at once and joins.
// Thread  start(), wait(): the owner's. set_ready(), renew_tls(), drain(), stop(): any thread, any number of times,
//         after start().
// Fails   start(): StartError if the address cannot be bound; its text says what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/http/cors.h"
#include "api/http/transport/listening_socket.h"
#include "api/http/transport/tls_context.h"
#include "api/services/services.h"
#include "api/tracing/request_log.h"
#include "core/base/clock.h"

namespace quire::api::http {

// Limits of a connection. A time covers all of what it names, not a single read, unless the comment says otherwise.
struct ConnectionLimits {
  std::size_t head_bytes = 16 * 1024;  // request line and header fields; also any one chunk line, and the trailers
  std::size_t head_fields = 128;
  std::size_t body_bytes = 8u << 20;
  Duration head_timeout = std::chrono::seconds(10);
  Duration body_timeout = std::chrono::seconds(60);
  Duration body_read_timeout = std::chrono::seconds(30);  // between two reads of a body
  Duration idle_timeout = std::chrono::seconds(75);       // between two requests
  Duration write_timeout = std::chrono::seconds(75);      // for one write; a client that reads slower is disconnected
  // Reading on after the last reply, so that a reset does not discard it; also for a write once the server is stopping.
  Duration linger_timeout = std::chrono::seconds(2);
  Duration first_byte_delay = std::chrono::milliseconds(250);  // a stream's head waits so long for the first token
  Duration ping_interval = std::chrono::seconds(5);            // a comment is sent if a stream had no event for so long
};

struct ServerConfig {
  std::string host = "127.0.0.1";           // an address, or "localhost"
  std::uint16_t port = 8000;                // 0: any free port
  std::string uds{};                        // path of a unix socket to listen on instead of host and port
  std::shared_ptr<const TlsContext> tls{};  // null: plain HTTP. The admin port is always plain
  std::string admin_host = "127.0.0.1";
  // Serves admin orders, which the main port then refuses, and probes and metrics, as every port does. 0: any free
  // port; none: there is no admin port.
  std::optional<std::uint16_t> admin_port{};
  std::uint32_t io_threads = 1;
  std::uint32_t max_connections = 16384;  // one more is answered 503 and closed, under TLS just closed
  std::uint32_t max_streams = 32768;      // open token streams per io thread; one more is answered 429
  Duration drain_timeout = std::chrono::seconds(30);
  CorsRules cors{};  // main port only
  tracing::LogRequests log_requests = tracing::LogRequests::kAll;
  ConnectionLimits limits;
};

// Sockets that were bound before the server was made.
struct Doors {
  BoundSocket clients;
  std::optional<BoundSocket> admins;  // if the configuration has an admin port
};

class Server {
 public:
  Server(ServerConfig config, Services services);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();             // binds and serves; until set_ready(true), /ready fails and completions are answered 503
  void start(Doors doors);  // as start(), without binding
  // The bound ports, after start(); 0: there is none.
  std::uint16_t port() const;
  std::uint16_t admin_port() const;

  void set_ready(bool ready);

  // The certificate of connections that begin from now on. ServerConfig::tls must have been set.
  void renew_tls(const std::shared_ptr<const TlsContext>& tls);

  // The server is not ready from now on, and new completions are answered 503. Answers under way may finish within
  // drain_timeout; then the server stops. Closes the admission queue.
  void drain();
  // Stops now: answers under way end with an error.
  void stop();
  // Waits until the server has stopped. True: every answer was finished; false: some were cut short.
  bool wait();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::api::http
