// The HTTP server: listens, runs its io threads, and goes in good order.
// Shape   one io_context, one thread and one StreamHub per io thread; a connection stays on the thread it was given to.
//         With an admin port, one more of each that nothing else runs on: it answers whatever the others do.
// Owner   app. Destruction stops at once and joins.
// Thread  start(), wait(): the owner's. set_ready(), renew_tls(), drain(), stop(): any, any number of times, after start().
// Fails   start(): StartError when the address cannot be bound, saying what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/http/cors.h"
#include "api/http/transport/tls_context.h"
#include "api/services.h"
#include "core/base/clock.h"

namespace quire::api::http {

// What a connection may take of us. Times are for the whole of what they name, not per read, where not said otherwise.
struct ConnectionLimits {
  std::size_t head_bytes = 16 * 1024;  // request line and fields; also any one chunk header, and the trailers
  std::size_t head_fields = 128;
  std::size_t body_bytes = 8u << 20;
  Duration head_timeout = std::chrono::seconds(10);
  Duration body_timeout = std::chrono::seconds(60);
  Duration body_read_timeout = std::chrono::seconds(30);  // between two reads of a body
  Duration idle_timeout = std::chrono::seconds(75);       // between two requests
  Duration write_timeout = std::chrono::seconds(75);      // for one write: a reader slower than this is gone
  Duration linger_timeout =
      std::chrono::seconds(2);  // reading on after an error, so that the reply is not lost to a reset
  Duration first_byte_delay = std::chrono::milliseconds(250);  // how long a stream's head waits for its first token
  Duration ping_interval = std::chrono::seconds(5);  // a comment, when a stream had nothing to say for so long
};

struct ServerConfig {
  std::string host = "127.0.0.1";           // an address, or "localhost"
  std::uint16_t port = 8000;                // 0: any free port
  std::string uds{};                        // path of a unix socket to listen on instead of host and port
  std::shared_ptr<const TlsContext> tls{};  // null: plain HTTP. The admin port is always plain
  std::string admin_host = "127.0.0.1";
  // Probes and metrics are there, too, and orders to the server are there alone. 0: any free port.
  std::optional<std::uint16_t> admin_port{};
  std::uint32_t io_threads = 1;
  std::uint32_t max_connections = 16384;  // one more is answered 503 and closed
  std::uint32_t max_streams = 32768;      // open token streams per io thread; one more is answered 429
  Duration drain_timeout = std::chrono::seconds(30);
  CorsRules cors{};  // of the main port
  ConnectionLimits limits;
};

class Server {
 public:
  Server(ServerConfig config, Services services);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();  // binds and serves; /ready says no and completions are 503 until set_ready(true)
  // The bound ones, after start(); 0 where there is none.
  std::uint16_t port() const;
  std::uint16_t admin_port() const;

  void set_ready(bool ready);

  // For connections that begin from now on. Only where ServerConfig had one.
  void renew_tls(const std::shared_ptr<const TlsContext>& tls);

  // Not ready from now on; new completions are answered 503; the answers under way finish, at most until drain_timeout;
  // then the server stops. It closes the admission queue.
  void drain();
  // Now: answers under way end with an error.
  void stop();
  // Until stopped. True: every answer was finished; false: some were cut short.
  bool wait();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::api::http
