// Trace context of a request: parses the headers `traceparent` and `tracestate`, and decides if the trace is sampled.
// Shape   a trace id has 32 hexadecimal digits, a span id 16, in lower case and not all of them 0.
// Thread  any; pure functions.
// Fails   never: an invalid header counts as a missing one.
// Source  W3C Trace Context, level 1, sections 3.2 and 3.3; sampling: the built-in samplers of OpenTelemetry's
//         specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quire::observe {

inline constexpr std::size_t kMaxTraceStateBytes =
    512;  // as much as every vendor should pass on; a longer one is dropped
inline constexpr std::size_t kMaxTraceStateMembers = 32;

// The caller's span.
struct TraceParent {
  std::string trace_id;
  std::string span_id;
  bool sampled = false;
};

// Parses the value of a traceparent header. A request with two such headers has none: the caller checks that.
std::optional<TraceParent> parse_traceparent(std::string_view field);

// True if `fields`, the values of all tracestate headers in order and joined by commas, are valid.
bool is_tracestate(std::string_view fields);

// Decides which traces are exported. The share is taken by trace id, so that all services with an equal share sample
// the same traces.
struct Sampler {
  double root_share = 1.0;     // 0..1: share of the traces that begin here
  bool follows_parent = true;  // a trace with a parent is sampled if its parent span is; false: by root_share, too

  bool takes(std::string_view trace_id, const TraceParent* parent) const;
};

}  // namespace quire::observe
