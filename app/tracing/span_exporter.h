// Sends spans to their receiver in batches, on its own thread: no producer of a span waits.
// Shape   a batch is sent when it is full, or `delay` after its first span. While a batch is retried, the queue fills.
//         Spans that the queue has no room for or that the receiver rejects are dropped and counted; the log says so at
//         most once a minute, and at the end.
// Owner   app.
// Thread  queue(): any. All else: main.
// Fails   never for its callers.
// Source  OpenTelemetry: batch span processor; OTLP/HTTP: statuses that are retried, Retry-After, partial success.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "api/tracing/otlp_json.h"
#include "api/tracing/tracer.h"
#include "app/tracing/trace_receiver.h"
#include "app/tracing/trace_settings.h"
#include "core/base/clock.h"
#include "core/observe/metrics.h"

namespace quire::app {

class SpanExporter {
 public:
  // `receiver` and `metrics` outlive the exporter.
  SpanExporter(const ExportLimits& limits, api::tracing::Resource resource, TraceReceiver& receiver,
               observe::Metrics& metrics);
  ~SpanExporter() { stop(Duration{0}); }
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  api::tracing::SpanQueue& queue() { return queue_; }
  // Sends the queued spans, each batch once, in at most `within` altogether, and ends the thread.
  void stop(Duration within);

 private:
  using Batch = std::vector<api::tracing::RequestSpan>;
  void run();
  void deliver(const Batch& batch);
  void note_taken(std::uint64_t spans, const std::string& reply);
  void drop(std::uint64_t spans, const std::string& why);
  void say_dropped(const std::string& why);
  TimePoint end() const { return TimePoint(Duration(end_.load(std::memory_order_acquire))); }
  bool ending() const { return end() != TimePoint::max(); }

  const ExportLimits limits_;
  const api::tracing::Resource resource_;
  TraceReceiver& receiver_;
  observe::Metrics& metrics_;
  api::tracing::SpanQueue queue_;
  std::uint64_t num_reported_ = 0;  // dropped spans that the log has reported
  TimePoint reported_at_{};         // 0: never
  std::string why_;                 // reason of the last drop
  // Time after which nothing is sent; written by stop() (release), read by the thread (acquire).
  std::atomic<Duration::rep> end_{TimePoint::max().time_since_epoch().count()};
  std::thread thread_;  // last member: it uses all of the above
};

}  // namespace quire::app
