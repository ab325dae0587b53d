// What a connection tells of its requests for their traces: one span each, whatever becomes of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/http/server.h"
#include "api/tracing/tracer.h"
#include "tests/api/generation/fake_engine.h"
#include "tests/api/http/raw_client.h"
#include "tests/support/quiet_log.h"

namespace quire::api::http::session_trace_test {
namespace {

using namespace std::chrono_literals;
using test::get;
using test::post_completion;
using test::RawClient;
using tracing::RequestSpan;

const std::string kTrace = "0af7651916cd43dd8448eb211c80319c";
const std::string kCaller = "b7ad6b7169203331";
const std::string kBody = R"({"prompt":"Once upon a time","max_tokens":4})";
const std::string kEndlessStream = R"({"prompt":"Once upon a time","max_tokens":500,"ignore_eos":true,"stream":true})";

std::string parent(const std::string& flags = "01") {
  return "traceparent: 00-" + kTrace + "-" + kCaller + "-" + flags + "\r\n";
}

class SessionTraceTest : public ::testing::Test {
 protected:
  explicit SessionTraceTest(bridge::AdmissionQueue::Limits limits = {}) : world_(limits), engine_(world_) {
    config_.port = 0;
  }

  RawClient connect() {
    if (!server_) {
      Services services = world_.services();
      services.tracer = &tracer_;
      server_ = std::make_unique<Server>(config_, services);
      server_->start();
      server_->set_ready(true);
    }
    return RawClient(server_->port());
  }
  int ask(const std::string& request) {
    RawClient client = connect();
    client.send(request);
    return client.read_response().status;
  }
  // The one that ended since the last call.
  RequestSpan span() {
    std::vector<RequestSpan> all = spans_.take(1, 20s);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? RequestSpan{} : std::move(all[0]);
  }
  // Nothing ended that span() has not given.
  void expect_no_more() {
    server_.reset();
    spans_.close();
    EXPECT_TRUE(spans_.take(100, 0s).empty());
  }

  quire::testing::QuietLog quiet_log_;
  test::World world_;
  ServerConfig config_;
  tracing::SpanQueue spans_{64};
  tracing::Tracer tracer_{{}, spans_, world_.metrics};
  test::FakeEngine engine_;
  std::unique_ptr<Server> server_;  // goes before the engine
};

class SessionTraceOfAFullLineTest : public SessionTraceTest {
 protected:
  SessionTraceOfAFullLineTest() : SessionTraceTest({.max_sequences = 1}) {}
};

TEST_F(SessionTraceTest, AWholeAnswerIsASpanOfItsCallersTrace) {
  EXPECT_EQ(ask(post_completion(kBody, "X-Request-Id: mine\r\n" + parent() + "tracestate: a=1\r\ntracestate: b=2\r\n")),
            200);
  const RequestSpan reported = span();
  EXPECT_EQ(reported.context.trace_id, kTrace);
  EXPECT_EQ(reported.context.parent_id, kCaller);
  EXPECT_EQ(reported.context.state, "a=1,b=2");
  EXPECT_EQ(reported.context.span_id.size(), 16u);
  EXPECT_EQ(reported.request_id, "mine");
  EXPECT_EQ(reported.route, "/v1/completions");
  EXPECT_EQ(reported.status, 200);
  EXPECT_FALSE(reported.https);
  EXPECT_LT(reported.start_ns, reported.end_ns);
  ASSERT_TRUE(reported.generated);
  EXPECT_TRUE(reported.generated->admitted);
  EXPECT_EQ(reported.generated->usage.completion, 4u);
  EXPECT_EQ(reported.generated->max_tokens, 4u);
  EXPECT_EQ(reported.generated->finish_reasons, (std::vector<std::string_view>{"length"}));
  EXPECT_EQ(reported.generated->error_type, "");
  expect_no_more();
}

TEST_F(SessionTraceTest, SoIsAStream) {
  EXPECT_EQ(ask(post_completion(R"({"prompt":"Once upon a time","max_tokens":4,"stream":true})", parent())), 200);
  const RequestSpan reported = span();
  EXPECT_EQ(reported.context.parent_id, kCaller);
  ASSERT_TRUE(reported.generated);
  EXPECT_TRUE(reported.generated->streams);
  EXPECT_EQ(reported.generated->usage.completion, 4u);
  expect_no_more();
}

TEST_F(SessionTraceTest, ATraceparentThatBreaksARuleBeginsATraceOfItsOwn) {
  const std::string bad = "traceparent: 00-" + std::string(32, '0') + "-" + kCaller + "-01\r\n";
  for (const std::string& fields : {std::string(), bad, parent() + parent(), parent("0") + "tracestate: a=1\r\n"}) {
    EXPECT_EQ(ask(post_completion(kBody, fields)), 200);
    const RequestSpan reported = span();
    EXPECT_EQ(reported.context.trace_id.size(), 32u);
    EXPECT_NE(reported.context.trace_id, kTrace);
    EXPECT_EQ(reported.context.parent_id, "");
    EXPECT_EQ(reported.context.state, "");
  }
}

TEST_F(SessionTraceTest, ATracestateThatBreaksARuleIsLeftOut) {
  EXPECT_EQ(ask(post_completion(kBody, parent() + "tracestate: NO=1\r\n")), 200);
  const RequestSpan reported = span();
  EXPECT_EQ(reported.context.trace_id, kTrace);
  EXPECT_EQ(reported.context.state, "");
}

TEST_F(SessionTraceTest, WhatItsCallerDoesNotSampleIsNotSent) {
  EXPECT_EQ(ask(post_completion(kBody, parent("00"))), 200);
  EXPECT_EQ(ask(post_completion(kBody, parent("01"))), 200);
  EXPECT_EQ(span().context.parent_id, kCaller);
  expect_no_more();
}

TEST_F(SessionTraceTest, RefusedRequestsHaveTheirSpan) {
  struct Case {
    std::string request;
    int status;
    std::string_view route;
  };
  const std::string head = "X: y\r\n" + parent();
  for (const Case& one :
       {Case{post_completion(R"({"prompt":"a","max_tokens":-1})", head), 400, "/v1/completions"},
        Case{post_completion("{", head), 400, "/v1/completions"},
        Case{post_completion(R"({"prompt":"a","model":"nobody"})", head), 404, "/v1/completions"},
        Case{get("/v1/completions"), 405, "/v1/completions"}, Case{get("/nowhere"), 404, ""},
        Case{get("/v1/models/nobody"), 404, "/v1/models/{model}"}, Case{get("/v1/models"), 200, "/v1/models"},
        Case{get("/v1/requests/x/explain"), 404, "/v1/requests/{id}/explain"}, Case{"NONSENSE\r\n\r\n", 400, ""}}) {
    EXPECT_EQ(ask(one.request), one.status) << one.request;
    const RequestSpan reported = span();
    EXPECT_EQ(reported.status, one.status) << one.request;
    EXPECT_EQ(reported.route, one.route) << one.request;
    EXPECT_EQ(reported.context.trace_id.size(), 32u);
    EXPECT_FALSE(reported.generated && reported.generated->admitted);
  }
  expect_no_more();
}

TEST_F(SessionTraceTest, ProbesHaveNone) {
  for (const std::string path : {"/live", "/ready", "/health", "/metrics", "/version"}) EXPECT_EQ(ask(get(path)), 200);
  ask(get("/v1/models"));
  EXPECT_EQ(span().route, "/v1/models");
  expect_no_more();
}

TEST_F(SessionTraceOfAFullLineTest, OneThatFindsNoPlaceHasItsSpan) {
  engine_.hold_queue(true);
  RawClient waits = connect();
  waits.send(post_completion(kBody));
  while (world_.queue.waiting_sequences() < 1) std::this_thread::yield();
  EXPECT_EQ(ask(post_completion(kBody, parent())), 429);
  const RequestSpan reported = span();
  EXPECT_EQ(reported.status, 429);
  EXPECT_EQ(reported.context.parent_id, kCaller);
  engine_.hold_queue(false);
  EXPECT_EQ(waits.read_response().status, 200);
  EXPECT_EQ(span().status, 200);
}

TEST_F(SessionTraceTest, AClientThatLeavesEndsItsSpan) {
  engine_.allow_tokens(3);
  {
    RawClient client = connect();
    client.send(post_completion(kEndlessStream, parent()));
    client.read_until("data: ");
    client.reset();
  }
  const RequestSpan reported = span();
  EXPECT_EQ(reported.status, 499);
  ASSERT_TRUE(reported.generated);
  EXPECT_TRUE(reported.generated->admitted);
  EXPECT_GT(reported.generated->usage.completion, 0u);
  EXPECT_TRUE(reported.generated->finish_reasons.empty());
  EXPECT_TRUE(engine_.wait_cancelled(1));
  expect_no_more();
}

TEST_F(SessionTraceTest, AnAnswerThatIsCutShortEndsItsSpanWithAnError) {
  engine_.allow_tokens(3);
  RawClient client = connect();
  client.send(post_completion(kEndlessStream, parent()));
  client.read_until("data: ");
  server_->stop();
  const RequestSpan reported = span();
  EXPECT_EQ(reported.status, 200) << "it was out already";
  ASSERT_TRUE(reported.generated);
  EXPECT_EQ(reported.generated->error_type, "unavailable_error");
  server_->wait();
}

TEST_F(SessionTraceTest, ALineThatIsFullHoldsUpNobody) {
  const int num_requests = 70;  // six more than there is room for
  for (int i = 0; i < num_requests; ++i) EXPECT_EQ(ask(get("/v1/models")), 200);
  server_.reset();
  EXPECT_EQ(world_.metrics.trace_spans_without_room.value(), 6u);
}

}  // namespace
}  // namespace quire::api::http::session_trace_test
