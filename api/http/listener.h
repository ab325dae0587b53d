// Accepts connections and deals them out to the io threads in turn. Running out of descriptors is a pause, not an end.
// Owner   Server::State. Thread  the first of its io threads, but bind(): the owner's, before the threads run.
// Fails   bind(): StartError saying what to do. accept(): never; what cannot be served is answered 503 and closed, under TLS just
//         closed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/http/io_thread.h"
#include "api/http/transport/listening_socket.h"

namespace quire::api::http {

class Listener {
 public:
  // `threads` outlive it.
  Listener(std::vector<std::unique_ptr<IoThread>>& threads, Place place);

  std::uint16_t bind();  // the port; 0 for a unix socket
  void start();
  void close();

 private:
  boost::asio::awaitable<void> accept();
  void take(IoThread& io, Socket socket);

  std::vector<std::unique_ptr<IoThread>>& threads_;
  ListeningSocket socket_;
  boost::asio::steady_timer pause_;
  std::size_t next_ = 0;
};

}  // namespace quire::api::http
