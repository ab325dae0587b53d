// Where traces go, which, and as whose: --otlp-traces-endpoint, and the variables that every OpenTelemetry SDK reads.
// Shape   the flag goes before OTEL_EXPORTER_OTLP_TRACES_…, that before OTEL_EXPORTER_OTLP_…. A variable set to nothing is not set.
// Thread  one, while starting.
// Fails   a wrong flag is a problem. A wrong variable is a note, and counts as not set: the environment is shared.
// Source  OpenTelemetry specification: "Environment Variable Specification", "OTLP Exporter Configuration".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/tracing/otlp_json.h"
#include "app/config.h"
#include "app/http_get.h"
#include "core/base/clock.h"
#include "core/observe/trace_context.h"

namespace quire::app {

// How spans are gathered and sent. The specification's defaults; a request counts as one span.
struct ExportLimits {
  std::uint32_t max_queue = 2048;  // requests that wait to be told; one more is dropped
  std::uint32_t max_batch = 512;   // told at once
  Duration delay = std::chrono::seconds(5);
  Duration timeout = std::chrono::seconds(10);  // of one attempt
  std::uint32_t attempts = 5;
  Duration first_wait = std::chrono::seconds(1);  // before the second; then twice as long each
  Duration longest_wait = std::chrono::seconds(30);
};

struct TraceSettings {
  Url url;              // the path included
  std::string ca_file;  // PEM of who signs the receiver's certificate; empty: whom the system trusts
  std::vector<std::pair<std::string, std::string>> headers;  // may be secrets
  api::tracing::Resource resource;
  observe::Sampler sampler;
  ExportLimits limits;
};

// Empty: nothing is traced.
std::optional<TraceSettings> trace_settings(const std::string& endpoint, const char* const* environment,
                                            Problems& problems, std::vector<std::string>& notes);

}  // namespace quire::app
