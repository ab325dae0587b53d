// Accepts connections and distributes them round-robin over the io threads. When out of file descriptors, it pauses and
// goes on.
// Owner   Server::State. Thread  the first of its io threads; bind(): the owner's, before the threads run.
// Fails   bind(): StartError whose text says what to do. accept(): never; a connection over the limit is answered 503
//         and closed, under TLS just closed.
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
  // `threads` outlive the listener.
  Listener(std::vector<std::unique_ptr<IoThread>>& threads, Place place);

  std::uint16_t bind();                     // returns the port; 0 for a unix socket
  std::uint16_t adopt(BoundSocket socket);  // instead of bind()
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
