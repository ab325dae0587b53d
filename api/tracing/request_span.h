// One request as its trace tells it, from its arrival to its last byte. Plain data, a bounded amount of it: no prompt, no
// answer, nothing of what an error says of them.
// Shape   times are nanoseconds since 1970. Those inside the engine are its Timeline's, on the same arrival.
// Owner   moved from the io thread to whoever sends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/requests/timings.h"
#include "core/bridge/timeline.h"

namespace quire::api::tracing {

// Where a request stands in a trace.
struct Context {
  std::string trace_id;   // empty: nobody traces it
  std::string span_id;    // its own; empty where it is not sampled
  std::string parent_id;  // its caller's span; empty: the trace begins here
  std::string state;      // tracestate, as it came

  bool sampled() const { return !span_id.empty(); }
};

// What a request that generates asked for, and what came of it.
struct Generated {
  static constexpr std::size_t kMaxPreemptions = 16;

  std::string model;
  std::string id;  // that its answer's is made of
  std::uint32_t n = 1;
  std::optional<std::uint32_t> max_tokens;
  float temperature = 1.0f;
  float top_p = 1.0f;
  std::int32_t top_k = 0;
  bool streams = false;

  std::uint32_t num_sequences = 0;
  bool admitted = false;
  requests::TokenCounts usage{};
  requests::Phases phases{};
  // The first kMaxPreemptions, of its sequences one after the other.
  std::vector<bridge::Timeline::Preemption> preemptions{};
  std::uint32_t num_preemptions = 0;               // all of them
  std::vector<std::string_view> finish_reasons{};  // literals, one an answered choice that has ended
  std::string_view error_type{};                   // a literal; empty: it did not fail
};

struct RequestSpan {
  Context context;
  std::string request_id;
  std::string method;
  std::string path;        // as sent, cut
  std::string_view route;  // a literal; empty: no path of ours
  bool https = false;
  int status = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<Generated> generated;
};

}  // namespace quire::api::tracing
