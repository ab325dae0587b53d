// Accepts connections and deals them out to the io threads in turn. Running out of descriptors is a pause, not an end.
// Owner   Server::State. Thread  the first io thread, but bind(): the owner's, before the threads run.
// Fails   bind(): StartError saying what to do. accept(): never; what cannot be served is answered 503 and closed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/http/io_thread.h"

namespace quire::api::http {

class Listener {
 public:
  explicit Listener(std::vector<std::unique_ptr<IoThread>>& threads);

  std::uint16_t bind();  // the port
  void start();
  void close();

 private:
  boost::asio::awaitable<void> accept();
  void take(IoThread& io, boost::asio::ip::tcp::socket socket);

  std::vector<std::unique_ptr<IoThread>>& threads_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::size_t next_ = 0;
};

}  // namespace quire::api::http
