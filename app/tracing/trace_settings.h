// Settings of tracing: the receiver, the sampler and the resource, from --otlp-traces-endpoint and the environment
// variables that every OpenTelemetry SDK reads.
// Shape   precedence: the flag, OTEL_EXPORTER_OTLP_TRACES_…, OTEL_EXPORTER_OTLP_…. An empty variable counts as not set.
// Thread  one, while starting.
// Fails   an invalid flag is a problem. An invalid variable is a note and counts as not set: the environment is shared.
// Source  OpenTelemetry specification: "Environment Variable Specification", "OTLP Exporter Configuration".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/tracing/otlp_json.h"
#include "app/config/config.h"
#include "app/http/http_get.h"
#include "core/base/clock.h"
#include "core/observe/trace_context.h"

namespace quire::app {

// Limits of gathering and sending spans. The defaults are the specification's; a request counts as one span.
struct ExportLimits {
  std::uint32_t max_queue = 2048;  // requests that wait to be sent; more are dropped
  std::uint32_t max_batch = 512;   // requests per batch
  Duration delay = std::chrono::seconds(5);
  Duration timeout = std::chrono::seconds(10);  // of one attempt
  std::uint32_t attempts = 5;
  Duration first_wait = std::chrono::seconds(1);  // before the second attempt; doubled before each later one
  Duration longest_wait = std::chrono::seconds(30);
};

struct TraceSettings {
  Url url;  // includes the path
  // PEM of the CA that signed the receiver's certificate; empty: the system's CAs.
  std::string ca_file;
  std::vector<std::pair<std::string, std::string>> headers;  // may be secrets
  api::tracing::Resource resource;
  observe::Sampler sampler;
  ExportLimits limits;
};

// Empty: no tracing.
std::optional<TraceSettings> trace_settings(const std::string& endpoint, const char* const* environment,
                                            Problems& problems, std::vector<std::string>& notes);

}  // namespace quire::app
