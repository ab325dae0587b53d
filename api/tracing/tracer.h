// Decides which requests are sampled, and queues their spans for the exporter when they have ended.
// Owner   app; outlives the Server. Borrows the queue and the metrics.
// Thread  any; no call waits.
// Fails   end(): spans for which the queue has no room are dropped and counted.
#pragma once

#include <optional>
#include <string>

#include "api/wire/request_span.h"
#include "core/concurrent/batch_queue.h"
#include "core/observe/metrics.h"
#include "core/observe/trace_context.h"

namespace quire::api::tracing {

using SpanQueue = concurrent::BatchQueue<RequestSpan>;

class Tracer {
 public:
  // `queue` and `metrics` outlive it.
  Tracer(const observe::Sampler& sampler, SpanQueue& queue, observe::Metrics& metrics)
      : sampler_(sampler), queue_(queue), metrics_(metrics) {}

  Context begin(const std::optional<observe::TraceParent>& parent, std::string state) const;
  void end(RequestSpan span) const;

 private:
  const observe::Sampler sampler_;
  SpanQueue& queue_;
  observe::Metrics& metrics_;
};

// Also for a server without a tracer (null): then a request is not sampled, but keeps its caller's trace id for the
// log.
Context begin(const Tracer* tracer, const std::optional<observe::TraceParent>& parent, std::string state);

// The number of spans of a request: its own, and `queue`, `prefill` and `decode` if it has them.
std::size_t num_spans(const RequestSpan& span);

}  // namespace quire::api::tracing
