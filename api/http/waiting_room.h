// Answers on the server's ports before there is a model to serve: /live is 200, /health, /ready and the like are 503
// with {"status":"downloading","progress":0.43}, everything else is 503. Then the sockets go to the Server.
// Shape   one thread; one answer a connection, then it is closed.
// Owner   app. leave() is called once at most; without it the destructor closes the ports.
// Thread  the owner's; show(): any.
// Fails   the constructor: StartError if an address cannot be bound; its text says what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/http/server.h"

namespace quire::api::http {

class WaitingRoom {
 public:
  explicit WaitingRoom(const ServerConfig& config);
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  std::uint16_t port() const;  // 0: a unix socket

  // The state of the start, as a word, and how far it is (0..1).
  void show(std::string status, std::optional<double> progress = std::nullopt);

  // Finishes the answers that have begun. Connections that arrive from now on wait for the server.
  Doors leave();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::api::http
