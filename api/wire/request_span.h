// The record of one request for its trace, from arrival to last byte. Plain data of bounded size: no prompt, no answer,
// and no error message, which could quote them.
// Shape   times are nanoseconds since 1970. Times inside the engine are microseconds of its Timeline, after arrival.
// Owner   moved from the io thread to the exporter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/wire/timings.h"
#include "core/bridge/timeline.h"

namespace quire::api::tracing {

// The position of a request in a trace.
struct Context {
  std::string trace_id;   // empty: the request belongs to no trace
  std::string span_id;    // of the request's own span; empty: it is not sampled
  std::string parent_id;  // its caller's span; empty: the trace begins here
  std::string state;      // tracestate, as received

  bool sampled() const { return !span_id.empty(); }
};

// The parameters and the outcome of a request that generates.
struct Generated {
  static constexpr std::size_t kMaxPreemptions = 16;

  std::string model{};
  std::string id{};  // the answer's id without its prefix
  std::uint32_t n = 1;
  std::optional<std::uint32_t> max_tokens{};
  float temperature = 1.0f;
  float top_p = 1.0f;
  std::int32_t top_k = 0;
  bool streams = false;

  std::uint32_t num_sequences = 0;
  bool admitted = false;
  requests::TokenCounts usage{};
  requests::Phases phases{};
  // The first kMaxPreemptions, sequence after sequence.
  std::vector<bridge::Timeline::Preemption> preemptions{};
  std::uint32_t num_preemptions = 0;               // all of them
  std::vector<std::string_view> finish_reasons{};  // literals, one per choice that has ended, best_of included
  std::string_view error_type{};                   // a literal; empty: the request did not fail
};

struct RequestSpan {
  Context context;
  std::string request_id;
  std::string method;
  std::string path;        // as sent, shortened and without control characters
  std::string_view route;  // a literal; empty: an unknown path
  bool https = false;
  int status = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<Generated> generated;
};

}  // namespace quire::api::tracing
