#include "api/tracing/tracer.h"

#include <gtest/gtest.h>

#include <string>

namespace quire::api::tracing::tracer_test {
namespace {

const std::string kTrace(32, 'a');
const std::string kParent(16, 'c');

RequestSpan request_span() {
  RequestSpan span;
  span.context = {kTrace, std::string(16, 'b'), "", ""};
  return span;
}

RequestSpan generated_span() {
  RequestSpan span = request_span();
  Generated& one = span.generated.emplace();
  one.admitted = true;
  one.phases.first_start = 1;
  one.phases.first_token = 2;
  return span;
}

TEST(Tracer, GoesOnWithItsCallersTraceAndBeginsOneWhereThereIsNone) {
  observe::Metrics metrics({});
  SpanQueue queue(4);
  const Tracer tracer({}, queue, metrics);
  const Context below = tracer.begin(observe::TraceParent{kTrace, kParent, true}, "rojo=1");
  EXPECT_EQ(below.trace_id, kTrace);
  EXPECT_EQ(below.parent_id, kParent);
  EXPECT_EQ(below.state, "rojo=1");
  EXPECT_TRUE(below.sampled());
  const Context root = tracer.begin(std::nullopt, "");
  EXPECT_EQ(root.trace_id.size(), 32u);
  EXPECT_EQ(root.span_id.size(), 16u);
  EXPECT_EQ(root.parent_id, "");
  EXPECT_NE(tracer.begin(std::nullopt, "").trace_id, root.trace_id);
}

TEST(Tracer, ATraceThatItsCallerDoesNotSampleIsNamedAndNotSampled) {
  observe::Metrics metrics({});
  SpanQueue queue(4);
  const Tracer tracer({}, queue, metrics);
  const Context context = tracer.begin(observe::TraceParent{kTrace, kParent, false}, "rojo=1");
  EXPECT_EQ(context.trace_id, kTrace);
  EXPECT_FALSE(context.sampled());
}

TEST(Tracer, WithoutOneARequestStillNamesItsCallersTrace) {
  EXPECT_EQ(begin(nullptr, observe::TraceParent{kTrace, kParent, true}, "").trace_id, kTrace);
  EXPECT_FALSE(begin(nullptr, observe::TraceParent{kTrace, kParent, true}, "").sampled());
  EXPECT_EQ(begin(nullptr, std::nullopt, "").trace_id, "");
}

TEST(Tracer, CountsTheSpansThatTheLineHasNoRoomFor) {
  observe::Metrics metrics({});
  SpanQueue queue(2);
  const Tracer tracer({}, queue, metrics);
  tracer.end(request_span());
  tracer.end(generated_span());
  EXPECT_EQ(metrics.trace_spans_without_room.value(), 0u);
  tracer.end(generated_span());
  EXPECT_EQ(metrics.trace_spans_without_room.value(), 4u);
  EXPECT_EQ(queue.take(8, Duration{0}).size(), 2u);
}

}  // namespace
}  // namespace quire::api::tracing::tracer_test
