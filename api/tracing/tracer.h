// Decides which requests are traced, and hands their spans over when they have ended.
// Owner   app; outlives the Server.
// Thread  any; nothing here waits.
// Fails   end(): a span that finds the line full is dropped and counted.
#pragma once

#include <optional>
#include <string>

#include "api/tracing/request_span.h"
#include "core/bridge/batch_queue.h"
#include "core/observe/metrics.h"
#include "core/observe/trace_context.h"

namespace quire::api::tracing {

using SpanQueue = bridge::BatchQueue<RequestSpan>;

class Tracer {
 public:
  // Both are the caller's.
  Tracer(const observe::Sampler& sampler, SpanQueue& queue, observe::Metrics& metrics)
      : sampler_(sampler), queue_(queue), metrics_(metrics) {}

  Context begin(const std::optional<observe::TraceParent>& parent, std::string state) const;
  void end(RequestSpan span) const;

 private:
  const observe::Sampler sampler_;
  SpanQueue& queue_;
  observe::Metrics& metrics_;
};

// Of a server that may not trace: then a request still names its caller's trace, for the log.
Context begin(const Tracer* tracer, const std::optional<observe::TraceParent>& parent, std::string state);

// A request's span with those of its waiting, prompt and answer, where it had them.
std::size_t num_spans(const RequestSpan& span);

}  // namespace quire::api::tracing
