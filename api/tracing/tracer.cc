#include "api/tracing/tracer.h"

#include <utility>

#include "api/wire/response_head.h"

namespace quire::api::tracing {
namespace {

constexpr std::size_t kSpanDigits = 16;
constexpr char kZero = '0';

// A random span id. All zeros, 1 of 2^64 ids, would mean that there is none.
std::string span_id() {
  std::string id = http::random_id().substr(0, kSpanDigits);
  if (id.find_first_not_of(kZero) == id.npos) id.back() = '1';
  return id;
}

}  // namespace

Context Tracer::begin(const std::optional<observe::TraceParent>& parent, std::string state) const {
  Context context;
  context.trace_id = parent ? parent->trace_id : http::random_id();
  if (!sampler_.takes(context.trace_id, parent ? &*parent : nullptr)) return context;
  context.span_id = span_id();
  if (parent) context.parent_id = parent->span_id;
  context.state = std::move(state);
  return context;
}

void Tracer::end(RequestSpan span) const {
  const std::size_t spans = num_spans(span);
  if (!queue_.put(std::move(span))) metrics_.trace_spans_without_room.add(spans);
}

Context begin(const Tracer* tracer, const std::optional<observe::TraceParent>& parent, std::string state) {
  if (tracer != nullptr) return tracer->begin(parent, std::move(state));
  Context context;
  if (parent) context.trace_id = parent->trace_id;
  return context;
}

std::size_t num_spans(const RequestSpan& span) {
  if (!span.generated || !span.generated->admitted) return 1;
  const requests::Phases& phases = span.generated->phases;
  return 2 + (phases.first_start ? 1 : 0) + (phases.first_token ? 1 : 0);
}

}  // namespace quire::api::tracing
