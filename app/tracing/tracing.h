// All parts of tracing for a server: the tracer (sampling decisions), the exporter and the receiver.
// Owner   serve. Outlives the Server, and is stopped after it.
#pragma once

#include <memory>

#include "api/tracing/tracer.h"
#include "app/tracing/http_post.h"
#include "app/tracing/span_exporter.h"
#include "app/tracing/trace_settings.h"
#include "core/observe/metrics.h"

namespace quire::app {

class Tracing {
 public:
  Tracing(const TraceSettings& settings, observe::Metrics& metrics)
      : receiver_(settings.url, settings.headers, settings.ca_file),
        exporter_(settings.limits, settings.resource, receiver_, metrics),
        tracer_(settings.sampler, exporter_.queue(), metrics) {}

  const api::tracing::Tracer& tracer() const { return tracer_; }
  void stop() { exporter_.stop(kFlushTime); }

 private:
  static constexpr Duration kFlushTime = std::chrono::seconds(5);

  HttpPost receiver_;
  SpanExporter exporter_;
  api::tracing::Tracer tracer_;
};

}  // namespace quire::app
