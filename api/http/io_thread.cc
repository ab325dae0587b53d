#include "api/http/io_thread.h"

#include <time.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "api/http/session.h"
#include "core/base/log.h"
#include "core/concurrent/worker_pool.h"

namespace quire::api::http {
namespace {

namespace asio = boost::asio;

// The engine wakes the hub by posting to the context. The engine may hold streams, and with them the hub, longer than
// the server lives: so the hub's wake-up keeps the context alive, and the posted handler holds the hub weakly.
std::shared_ptr<bridge::StreamHub> make_hub(std::shared_ptr<asio::io_context> context, std::uint32_t max_streams,
                                            bridge::Doorbell& doorbell) {
  auto itself = std::make_shared<std::weak_ptr<bridge::StreamHub>>();
  auto hub = std::make_shared<bridge::StreamHub>(
      max_streams,
      [context = std::move(context), itself] {
        asio::post(*context, [hub = *itself] {
          if (const auto alive = hub.lock()) alive->drain();
        });
      },
      doorbell);
  *itself = hub;
  return hub;
}

// CPU time of this thread, without the time that it waited for events or for a processor.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

IoThread::IoThread(const Services& services_in, const ServerConfig& config_in, Entrance& entrance_in,
                   std::function<void()> on_idle)
    : services(services_in),
      config(config_in),
      entrance(entrance_in),
      context(std::make_shared<asio::io_context>(1)),
      hub(make_hub(context, entrance_in.max_streams, services_in.doorbell)),
      tls(entrance_in.tls),
      guard_(context->get_executor()),
      drain_timer_(*context),
      on_idle_(std::move(on_idle)) {}

void IoThread::run() {
  concurrent::name_thread(entrance.surface == Surface::kAdmin ? "quire-admin" : "quire-io");
  while (run_slices()) continue;
}

// Runs handlers and measures the time slice of each. True: a handler has thrown, and there is more to run.
bool IoThread::run_slices() try {
  double begun = processor_seconds();
  while (context->run_one() > 0) {
    const double done = processor_seconds();
    if (entrance.surface != Surface::kAdmin) services.metrics.io_slice_s.observe(done - begun);
    begun = done;
  }
  return false;
} catch (const std::exception& failure) {  // mostly bad_alloc; other connections are served on
  services.metrics.internal_errors.add();
  log_error("io_handler_failed", "{}", log_safe(failure.what()));
  return true;
}

void IoThread::leave(Session& session) {
  sessions_.erase(&session);
  report_connections(1);
}

// The gauge counts connections of clients, not those to the admin port.
void IoThread::report_connections(std::uint32_t leaving) const {
  if (entrance.surface == Surface::kAdmin) return;
  services.metrics.open_connections.set(entrance.connections.inside() - static_cast<double>(leaving));
}

void IoThread::begin_drain() {
  if (serving.draining) return;
  serving = {.ready = false, .draining = true, .gone_by = std::chrono::steady_clock::now() + config.drain_timeout};
  drain_timer_.expires_after(config.drain_timeout);
  drain_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) cut_answers();
  });
  report_idle();
}

void IoThread::begin_stop() {
  if (std::exchange(stopping_, true)) return;
  serving = {.ready = false, .draining = true, .gone_by = std::chrono::steady_clock::now()};
  cut_answers();
  for (Session* session : sessions_) session->stop();
  drain_timer_.cancel();
  guard_.reset();
}

void IoThread::report_idle() {
  if (serving.draining && num_answers_ == 0 && on_idle_) std::exchange(on_idle_, nullptr)();
}

void IoThread::cut_answers() {
  cut_ = cut_ || num_answers_ != 0;
  for (Session* session : sessions_) session->cut();
}

}  // namespace quire::api::http
