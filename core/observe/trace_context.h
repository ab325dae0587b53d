// Whose trace a request belongs to: what its caller says of it in `traceparent` and `tracestate`, and what we make of that.
// Shape   a trace's id is 32 hexadecimal digits, a span's 16, in lower case and not all of them 0.
// Thread  any; pure functions.
// Fails   never: a field that breaks its rules counts as one that did not come.
// Source  W3C Trace Context, level 1, sections 3.2 and 3.3; sampling: OpenTelemetry's specification of its built-in samplers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quire::observe {

inline constexpr std::size_t kMaxTraceStateBytes = 512;  // that much everybody has to pass on; a longer one is left out
inline constexpr std::size_t kMaxTraceStateMembers = 32;

// The caller's span.
struct TraceParent {
  std::string trace_id;
  std::string span_id;
  bool sampled = false;
};

// `field` is the value of the one traceparent that came; with two of them there is none.
std::optional<TraceParent> parse_traceparent(std::string_view field);

// `fields` are the values of all tracestates, in their order, with commas between them.
bool is_tracestate(std::string_view fields);

// Which traces are told. A share of those that begin here is one of their ids: whoever samples by the same share takes
// the same ones.
struct Sampler {
  double root_share = 1.0;     // 0..1, of the traces that begin here
  bool follows_parent = true;  // others are told where their caller's span is; else by the share, too

  bool takes(std::string_view trace_id, const TraceParent* parent) const;
};

}  // namespace quire::observe
