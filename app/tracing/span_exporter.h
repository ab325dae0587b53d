// Sends spans to their receiver, in batches, on a thread of its own: nobody who has a span waits for it.
// Shape   a batch goes once it is full, or some seconds after its first span. While one is tried again the line fills; what it
//         has no room for, and what the receiver does not take, is dropped and counted, and the log says so once a minute at most,
//         and at the end.
// Owner   app.
// Thread  queue(): any. The rest: main.
// Fails   never outwards.
// Source  OpenTelemetry: batch span processor; OTLP/HTTP: which statuses are tried again, Retry-After, partial success.
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
  // `receiver` and `metrics` outlive it.
  SpanExporter(const ExportLimits& limits, api::tracing::Resource resource, TraceReceiver& receiver,
               observe::Metrics& metrics);
  ~SpanExporter() { stop(Duration{0}); }
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  api::tracing::SpanQueue& queue() { return queue_; }
  // Sends what waits, each batch once and all of them within that time, and ends.
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
  std::uint64_t num_told_ = 0;  // dropped spans that the log has told of
  TimePoint told_at_{};         // never: 0
  std::string why_;             // the last ones were
  // When nothing is sent any more; written by stop() (release), read by the thread (acquire).
  std::atomic<Duration::rep> end_{TimePoint::max().time_since_epoch().count()};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace quire::app
