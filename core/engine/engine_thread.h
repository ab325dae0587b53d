// The engine thread: calls Engine::step() until stop(), and reports a device failure.
// Owner   app. Destruction stops and joins.
// Thread  start(), stop(): the owner's. From start() to the join only this thread touches the engine.
// Fails   an exception out of a step: status.fail(), `on_failure` is called once, every sequence ends with kFailed.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/engine/engine.h"

namespace quire::engine {

class EngineThread {
 public:
  EngineThread(Engine& engine, bridge::Doorbell& doorbell, bridge::EngineStatus& status,
               std::function<void()> on_failure);
  ~EngineThread();

  void start();
  // Ends the remaining sequences with kFailed, and joins. The caller drains before: it stops once no request is left.
  void stop();

 private:
  void run();

  Engine& engine_;
  bridge::Doorbell& doorbell_;
  bridge::EngineStatus& status_;
  const std::function<void()> on_failure_;
  std::atomic<bool> stopping_{false};  // written by stop() (release), read by the engine thread (acquire)
  std::thread thread_;
};

}  // namespace quire::engine
