#include "app/tracing/span_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "tests/support/quiet_log.h"

namespace quire::app {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using api::tracing::RequestSpan;

Result<ReceiverReply> reply(int status, std::string body = "{}") {
  return ReceiverReply{status, std::nullopt, std::move(body)};
}
Result<ReceiverReply> no_reply() { return Error{Code::kUnavailable, "connection refused", "", 0}; }

// Answers as the test says, and remembers what it was sent. Held, it keeps who sends waiting.
class Receiver final : public TraceReceiver {
 public:
  using Answer = std::function<Result<ReceiverReply>(std::size_t call)>;
  explicit Receiver(Answer answer) : answer_(std::move(answer)) {}

  Result<ReceiverReply> send(const std::string& body, Duration timeout) override {
    std::unique_lock lock(mutex_);
    bodies_.push_back(body);
    timeouts_.push_back(timeout);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_ || given_up_; });
    if (held_) return Error{Code::kUnavailable, "no answer in time", "", 0};
    return answer_(bodies_.size() - 1);
  }
  void give_up_at(TimePoint) override {  // at once: tests own the clock
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void wait_calls(std::size_t n) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return bodies_.size() >= n; }));
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::vector<Duration> timeouts() {
    const std::lock_guard lock(mutex_);
    return timeouts_;
  }

 private:
  const Answer answer_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool held_ = false;
  bool given_up_ = false;
  std::vector<std::string> bodies_;
  std::vector<Duration> timeouts_;
};

RequestSpan span(int number) {
  RequestSpan made;
  made.context = {std::string(32, 'a'), std::string(16, 'b'), "", ""};
  made.method = "GET";
  made.request_id = std::to_string(number);
  return made;
}

std::vector<std::string> ids_in(const std::string& body) {
  std::vector<std::string> ids;
  const json::value told = json::parse(body);
  for (const json::value& one : told.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").as_array()) {
    for (const json::value& attribute : one.at("attributes").as_array()) {
      if (attribute.at("key") == "gen_ai.request.id")
        ids.emplace_back(attribute.at("value").at("stringValue").as_string());
    }
  }
  return ids;
}

class SpanExporterTest : public ::testing::Test {
 protected:
  SpanExporterTest() {
    limits_.delay = 0ms;
    limits_.first_wait = 1ms;
    limits_.longest_wait = 2ms;
  }
  std::uint64_t dropped() const {
    return metrics_.trace_spans_not_sent.value() + metrics_.trace_spans_rejected.value();
  }

  quire::testing::QuietLog quiet_log_;
  ExportLimits limits_;
  observe::Metrics metrics_{{}};
};

TEST_F(SpanExporterTest, SendsEverySpanOnceAndInOrder) {
  Receiver receiver([](std::size_t) { return reply(200); });
  limits_.max_batch = 3;
  SpanExporter exporter(limits_, {{"service.name", "quire"}}, receiver, metrics_);
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(exporter.queue().put(span(i)));
    expected.push_back(std::to_string(i));
  }
  exporter.stop(20s);
  std::vector<std::string> sent;
  for (const std::string& body : receiver.bodies()) {
    const std::vector<std::string> ids = ids_in(body);
    EXPECT_LE(ids.size(), 3u);
    sent.insert(sent.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(sent, expected);
  EXPECT_EQ(metrics_.trace_spans_sent.value(), 100u);
  EXPECT_EQ(dropped(), 0u);
}

TEST_F(SpanExporterTest, TriesAgainWhatMayBeTriedAgain) {
  for (const int status : {0, 429, 502, 503, 504}) {
    observe::Metrics metrics({});
    Receiver receiver([status](std::size_t call) {
      return call == 2 ? reply(200) : status == 0 ? no_reply() : reply(status);
    });
    SpanExporter exporter(limits_, {}, receiver, metrics);
    exporter.queue().put(span(1));
    receiver.wait_calls(3);
    exporter.stop(20s);
    const std::vector<std::string> bodies = receiver.bodies();
    ASSERT_EQ(bodies.size(), 3u) << status;
    EXPECT_EQ(bodies[0], bodies[2]) << "the same spans";
    EXPECT_EQ(metrics.trace_spans_sent.value(), 1u);
    EXPECT_EQ(metrics.trace_spans_not_sent.value(), 0u);
  }
}

TEST_F(SpanExporterTest, DropsWhatMayNotBeTriedAgain) {
  for (const int status : {100, 301, 400, 401, 404, 413, 428, 430, 500, 501, 505}) {
    observe::Metrics metrics({});
    Receiver receiver([status](std::size_t) { return reply(status); });
    SpanExporter exporter(limits_, {}, receiver, metrics);
    exporter.queue().put(span(1));
    receiver.wait_calls(1);
    exporter.stop(20s);
    EXPECT_EQ(receiver.bodies().size(), 1u) << status;
    EXPECT_EQ(metrics.trace_spans_not_sent.value(), 1u) << status;
  }
}

TEST_F(SpanExporterTest, GivesUpAfterSoManyAttemptsAndGoesOnWithTheNext) {
  limits_.attempts = 3;
  limits_.max_batch = 1;
  Receiver receiver([](std::size_t call) { return call < 3 ? reply(503) : reply(200); });
  SpanExporter exporter(limits_, {}, receiver, metrics_);
  exporter.queue().put(span(1));
  exporter.queue().put(span(2));
  receiver.wait_calls(4);
  exporter.stop(20s);
  EXPECT_EQ(metrics_.trace_spans_not_sent.value(), 1u);
  EXPECT_EQ(metrics_.trace_spans_sent.value(), 1u);
  EXPECT_EQ(ids_in(receiver.bodies()[3]), std::vector<std::string>{"2"});
}

TEST_F(SpanExporterTest, AReceiverThatHangsFillsTheLineAndHoldsUpNobody) {
  Receiver receiver([](std::size_t) { return reply(200); });
  receiver.hold(true);
  limits_.max_queue = 5;
  limits_.max_batch = 5;
  SpanExporter exporter(limits_, {}, receiver, metrics_);
  exporter.queue().put(span(0));
  receiver.wait_calls(1);  // that one is on its way
  for (int i = 1; i <= 7; ++i) EXPECT_EQ(exporter.queue().put(span(i)), i <= 5) << i;
  exporter.stop(0s);
  EXPECT_EQ(metrics_.trace_spans_sent.value(), 0u);
  EXPECT_EQ(metrics_.trace_spans_not_sent.value(), 6u) << "every span that was taken is counted";
}

TEST_F(SpanExporterTest, AtItsEndEachBatchIsTriedOnceAndNoneAfterItsTime) {
  Receiver refuses([](std::size_t) { return no_reply(); });
  refuses.hold(true);
  limits_.max_batch = 2;
  SpanExporter exporter(limits_, {}, refuses, metrics_);
  exporter.queue().put(span(0));
  refuses.wait_calls(1);
  for (int i = 1; i < 6; ++i) exporter.queue().put(span(i));
  exporter.stop(20s);
  EXPECT_EQ(refuses.bodies().size(), 4u) << "one, and five in twos";
  EXPECT_EQ(metrics_.trace_spans_not_sent.value(), 6u);
  for (const Duration timeout : refuses.timeouts()) EXPECT_LE(timeout, limits_.timeout);
}

TEST_F(SpanExporterTest, CountsWhatTheReceiverRejectsOfABatch) {
  struct Case {
    const char* body;
    std::uint64_t rejected;
  };
  for (const Case& one :
       {Case{"{}", 0}, Case{"", 0}, Case{"<html>", 0}, Case{"[1]", 0}, Case{R"({"partialSuccess":{}})", 0},
        Case{R"({"partialSuccess":{"rejectedSpans":"2"}})", 2}, Case{R"({"partialSuccess":{"rejectedSpans":2}})", 2},
        Case{R"({"partialSuccess":{"rejectedSpans":-2}})", 0}, Case{R"({"partialSuccess":{"rejectedSpans":"99"}})", 3},
        Case{R"({"partialSuccess":{"rejectedSpans":[]}})", 0}, Case{R"({"partialSuccess":7})", 0}}) {
    observe::Metrics metrics({});
    Receiver receiver([&](std::size_t) { return reply(200, one.body); });
    limits_.delay = 20s;
    limits_.max_batch = 3;
    SpanExporter exporter(limits_, {}, receiver, metrics);
    for (int i = 0; i < 3; ++i) exporter.queue().put(span(i));
    receiver.wait_calls(1);
    exporter.stop(20s);
    EXPECT_EQ(metrics.trace_spans_rejected.value(), one.rejected) << one.body;
    EXPECT_EQ(metrics.trace_spans_sent.value(), 3 - one.rejected) << one.body;
  }
}

TEST_F(SpanExporterTest, TheLogSaysOnceWhatAMinuteDropsAndTheRestAtTheEnd) {
  set_log_level(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  {
    limits_.max_batch = 1;
    Receiver receiver([](std::size_t) { return reply(400); });
    SpanExporter exporter(limits_, {}, receiver, metrics_);
    for (int i = 0; i < 50; ++i) exporter.queue().put(span(i));
    receiver.wait_calls(50);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kOff);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_THAT(log, ::testing::HasSubstr("trace_spans_dropped spans=1 why=the receiver answered with status 400\n"));
  EXPECT_THAT(log, ::testing::HasSubstr("trace_spans_dropped spans=49 "));
}

}  // namespace
}  // namespace quire::app
