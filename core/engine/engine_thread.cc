#include "core/engine/engine_thread.h"

#include <pthread.h>

#include <exception>
#include <utility>

#include "core/base/log.h"
#include "core/base/thread_role.h"

namespace quire::engine {

EngineThread::EngineThread(Engine& engine, bridge::Doorbell& doorbell, bridge::EngineStatus& status,
                           std::function<void()> on_failure)
    : engine_(engine), doorbell_(doorbell), status_(status), on_failure_(std::move(on_failure)) {}

EngineThread::~EngineThread() { stop(); }

void EngineThread::start() {
  thread_ = std::thread([this] { run(); });
}

void EngineThread::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  doorbell_.ring();
  thread_.join();
}

void EngineThread::run() {
  pthread_setname_np(pthread_self(), "quire-engine");
  const RoleScope role(engine_role);
  try {
    while (!stopping_.load(std::memory_order_acquire)) engine_.step();
  } catch (const std::exception& failure) {
    log_error("engine_failed", "{}", failure.what());
    status_.fail();
    if (on_failure_) on_failure_();
  }
  engine_.abandon();
}

}  // namespace quire::engine
