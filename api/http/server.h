// The HTTP server: listens, runs its io threads, and goes in good order.
// Shape   one io_context, one thread and one StreamHub per io thread; a connection stays on the thread it was given to.
// Owner   app. Destruction stops at once and joins.
// Thread  start(), wait(): the owner's. set_ready(), drain(), stop(): any, any number of times, after start().
// Fails   start(): StartError when the address cannot be bound, saying what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

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
  std::string host = "127.0.0.1";  // an address, or "localhost"
  std::uint16_t port = 8000;       // 0: any free port
  std::uint32_t io_threads = 1;
  std::uint32_t max_connections = 16384;  // one more is answered 503 and closed
  std::uint32_t max_streams = 32768;      // open token streams per io thread; one more is answered 429
  Duration drain_timeout = std::chrono::seconds(30);
  ConnectionLimits limits;
};

class Server {
 public:
  Server(ServerConfig config, Services services);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();                // binds and serves; /ready says no and completions are 503 until set_ready(true)
  std::uint16_t port() const;  // the bound one, after start()

  void set_ready(bool ready);

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
