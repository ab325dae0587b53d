// The one engine thread: steps the engine until told to stop, and says so when the device fails.
// Owner   app. Destruction stops and joins.
// Thread  start(), stop(): the owner's. The engine itself is touched by this thread alone from start() to the join.
// Fails   an exception out of a step: status.fail(), every sequence ends with kFailed, `on_failure` is called once.
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
  // Ends what still runs with kFailed and joins. Draining is the caller's: stop when no request is inside any more.
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
