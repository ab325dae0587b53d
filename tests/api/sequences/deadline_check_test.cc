// Deadlines and hopes at the io_handle, by what the engine measured, and what becomes of them later.
#include "api/sequences/deadline_check.h"

#include <gmock/gmock.h>

#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

using namespace std::chrono_literals;
using observe::Metrics;
using ::testing::HasSubstr;

// A server of two places, both of them taken, of which one comes free every four seconds; a token takes 7.8125 ms. So
// an answer of 101 tokens is there after 4.789 seconds.
class DeadlineCheckTest : public ::testing::Test {
 protected:
  DeadlineCheckTest() {
    services_.max_num_seqs = 2;
    request_.ignore_eos = true;
    sequence_.arrival = kArrival;
    sequence_.prompt = {1, 2, 3};
    sequence_.max_tokens = 101;
  }
  void measure() {
    world_.queue.load_estimate().note_end(8s, 2);
    world_.queue.load_estimate().note_gap(0.0078125);
    world_.metrics.requests_running.set(2);
  }
  // After what has passed since it came.
  Result<Done> check(Duration passed = 0s) const {
    const std::vector<flow::Request> sequences(num_sequences_, sequence_);
    std::vector<PromptRun> prompts(1);
    prompts[0].num_tokens = 3;
    return check_deadline(request_, slo_hints_, sequences, prompts, services_, kArrival + passed);
  }
  // So many wait.
  void fill_line(std::size_t n) {
    std::vector<bridge::Submission> waiting(n);
    for (bridge::Submission& one : waiting) one.request.prompt = {1};
    ASSERT_TRUE(world_.queue.admit(waiting));
  }

  static constexpr TimePoint kArrival = TimePoint{} + 1000s;
  World world_;
  Services services_ = world_.services();
  GenerationRequest request_;
  requests::SloHints slo_hints_;
  flow::Request sequence_;
  std::size_t num_sequences_ = 1;
};

TEST_F(DeadlineCheckTest, NobodyIsRefusedBeforeAnythingIsMeasured) {
  world_.metrics.requests_running.set(1000);
  world_.metrics.requests_waiting.set(1000);
  fill_line(100);
  request_.deadline_ms = 1;
  EXPECT_TRUE(check());
}

TEST_F(DeadlineCheckTest, ADeadlineIsRefusedWhereItIsBelowWhatIsExpectedAndNotAtIt) {
  measure();
  for (const auto& [deadline_ms, fits] : {std::pair{4788u, false}, {4789u, false}, {4790u, true}, {4791u, true}}) {
    request_.deadline_ms = deadline_ms;
    EXPECT_EQ(check().ok(), fits) << deadline_ms;
  }
}

TEST_F(DeadlineCheckTest, ARefusalSaysWhatIsAtFaultAndWhenToTryAgain) {
  measure();
  request_.deadline_ms = 2000;
  const Error error = check().error();
  EXPECT_EQ(error.code, Code::kQueueFull);
  EXPECT_EQ(error.param, "deadline_ms");
  EXPECT_STREQ(error.reason, "deadline_cannot_be_met");
  EXPECT_THAT(error.message, HasSubstr("about 4.789 s"));
  EXPECT_EQ(error.retry_after_s, 3) << "2.789 seconds late";
}

TEST_F(DeadlineCheckTest, TheSmallerOfFieldAndHeaderCounts) {
  measure();
  request_.deadline_ms = 60000;
  slo_hints_.timeout = 1s;
  EXPECT_EQ(check().error().param, requests::kTimeoutHeader);
  slo_hints_.timeout = 61s;
  EXPECT_TRUE(check());
  request_.deadline_ms = 1000;
  EXPECT_EQ(check().error().param, "deadline_ms");
}

TEST_F(DeadlineCheckTest, TimeThatHasPassedIsGone) {
  measure();
  request_.deadline_ms = 5000;
  EXPECT_TRUE(check(210ms));
  EXPECT_EQ(check(211ms).error().code, Code::kQueueFull);
  EXPECT_EQ(check(4999ms).error().code, Code::kQueueFull);
  EXPECT_EQ(check(5000ms).error().code, Code::kDeadline) << "no guess any more";
}

TEST_F(DeadlineCheckTest, AFreePlaceIsNotWaitedFor) {
  measure();
  request_.deadline_ms = 2000;
  world_.metrics.requests_running.set(1);
  EXPECT_TRUE(check());
  world_.metrics.requests_waiting.set(1);
  EXPECT_FALSE(check()) << "somebody waits already: there are places, and no blocks";
  world_.metrics.requests_waiting.set(0);
  num_sequences_ = 2;
  EXPECT_FALSE(check());
}

TEST_F(DeadlineCheckTest, WhoWaitsAlreadyCountsWhereTheLineIsInOrderAlone) {
  measure();
  request_.deadline_ms = 10000;
  EXPECT_TRUE(check());
  fill_line(2);  // eight seconds more
  EXPECT_FALSE(check());
  services_.first_come = false;
  EXPECT_TRUE(check()) << "it may go before them";
}

TEST_F(DeadlineCheckTest, AnAnswerThatMayEndEarlyIsExpectedToBeAsLongAsAnswersAre) {
  measure();
  request_.deadline_ms = 4500;
  sequence_.stop_tokens = {0};
  EXPECT_TRUE(check()) << "no answer has ended yet";
  world_.queue.load_estimate().note_answer(20);
  EXPECT_TRUE(check());
  world_.queue.load_estimate().note_answer(2000);
  EXPECT_FALSE(check());
  sequence_.max_tokens = 3;
  EXPECT_TRUE(check()) << "never longer than it may be";
  sequence_.max_tokens = 101;
  for (int i = 0; i < 100; ++i) world_.queue.load_estimate().note_answer(1);
  EXPECT_TRUE(check());
  request_.rules.min_tokens = 90;
  EXPECT_FALSE(check()) << "nor shorter";
}

TEST_F(DeadlineCheckTest, WhatIsHopedForShedsOnlyWhoIsSheddable) {
  measure();
  world_.metrics.requests_running.set(0);
  slo_hints_.first_token = 1ms;
  slo_hints_.token_time = 1ms;
  EXPECT_TRUE(check());
  slo_hints_.sheddable = true;
  EXPECT_EQ(check().error().param, requests::kFirstTokenHeader);
  slo_hints_.first_token = 10ms;
  EXPECT_EQ(check().error().param, requests::kTokenTimeHeader);
  slo_hints_.token_time = 10ms;
  EXPECT_TRUE(check());
  EXPECT_EQ(check(3ms).error().param, requests::kFirstTokenHeader);
}

TEST_F(DeadlineCheckTest, WhoIsSheddableNeverWaits) {
  measure();
  slo_hints_.sheddable = true;
  const Error error = check().error();
  EXPECT_EQ(error.code, Code::kQueueFull);
  EXPECT_EQ(error.param, requests::kObjectiveHeader);
  EXPECT_GE(error.retry_after_s, 1);
  world_.metrics.requests_running.set(1);
  EXPECT_TRUE(check());
  num_sequences_ = 2;
  EXPECT_FALSE(check());
  num_sequences_ = 1;
  fill_line(1);  // it is about to take that place
  EXPECT_FALSE(check());
}

// ---- through a whole request

class WishedTest : public CompletionRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override {
    request.slo_hints = headers_;
    request.arrival = arrival_ = std::chrono::steady_clock::now();
    return complete(services_, std::move(request));
  }
  std::vector<http::Field> headers_;
  TimePoint arrival_;
};

TEST_F(WishedTest, HeadersBecomePartsOfTheEnginesRequest) {
  headers_ = {{"X-Request-Timeout", "2.5"},
              {"x-slo-ttft-ms", "300"},
              {"x-slo-tpot-ms", "12.5"},
              {"x-gateway-inference-objective", "5"},
              {"x-gateway-inference-fairness-id", "team"}};
  auto completion = start(R"({"prompt":"a","deadline_ms":3000})");
  const flow::Request& request = submissions_[0].request;
  EXPECT_EQ(request.deadline, arrival_ + 2500ms);
  EXPECT_EQ(request.first_token_by, arrival_ + 300ms);
  EXPECT_EQ(request.token_time, 12500us);
  EXPECT_EQ(request.due(), arrival_ + 300ms);
  EXPECT_EQ(request.priority, -5);
  EXPECT_EQ(request.tenant, requests::tenant_of("team"));
  EXPECT_EQ(request.weight, 1u);
}

TEST_F(WishedTest, TheBodysPriorityPrevails) {
  headers_ = {{"x-gateway-inference-objective", "5"}};
  auto completion = start(R"({"prompt":"a","priority":2})");
  EXPECT_EQ(submissions_[0].request.priority, 2);
}

TEST_F(WishedTest, WithAKeyItsTenantAndWeightCountAndNoFairnessId) {
  headers_ = {{"x-gateway-inference-fairness-id", "team"}};
  http::Request request;
  request.body = R"({"prompt":"a"})";
  request.caller = std::make_shared<const keys::Caller>(
      keys::Caller{.name = "alice",
                   .tenant_id = 7,
                   .weight = 3,
                   .account = std::make_shared<bridge::Account>("alice", bridge::AccountLimits{})});
  auto completion = open(std::move(request));
  work(*completion);
  ASSERT_FALSE(completion->admit({hub_, [] {}, {}}));
  const auto submission = world_.queue.pop();
  EXPECT_EQ(submission->request.tenant, 7u);
  EXPECT_EQ(submission->request.weight, 3u);
}

TEST_F(WishedTest, AHeaderAtFaultIsNamed) {
  headers_ = {{"X-Request-Timeout", "soon"}};
  EXPECT_EQ(refusal(R"({"prompt":"a"})", 400).at("param"), "X-Request-Timeout");
}

TEST_F(WishedTest, WhatIsRefusedIsCountedWithItsSequences) {
  world_.queue.load_estimate().note_end(1h, 1);
  world_.metrics.requests_running.set(services_.max_num_seqs);
  headers_ = {{"x-slo-ttft-ms", "300"}};
  EXPECT_EQ(refusal(R"({"prompt":"a","n":3,"deadline_ms":1000})", 429).at("param"), "deadline_ms");
  EXPECT_EQ(world_.metrics.slos[Metrics::kDeadline][Metrics::kRefused].value(), 3u);
  EXPECT_EQ(world_.metrics.slos[Metrics::kFirstToken][Metrics::kRefused].value(), 3u);
  EXPECT_EQ(world_.metrics.slos[Metrics::kTokenTime][Metrics::kRefused].value(), 0u);
  EXPECT_EQ(world_.metrics.admission_rejections.value(), 1u);
}

TEST_F(WishedTest, OneThatWaitedTooLongIsAnswered504AndSaysSo) {
  auto completion = start(R"({"prompt":"a","deadline_ms":3600000})");
  submissions_[0].stream->push({-1, flow::Finish::kLate});
  test::take_events(*completion);
  ASSERT_TRUE(completion->finished());
  const http::Response whole = completion->whole();
  EXPECT_EQ(whole.status, 504);
  const json::value error = json::parse(whole.body).at("error");
  EXPECT_EQ(error.at("type"), "timeout_error");
  EXPECT_EQ(error.at("param"), "deadline_ms");
  EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr("waited"));
}

TEST_F(WishedTest, OneThatRanTooLongIsAnswered504OrEndsItsStreamWithTheError) {
  auto whole = start(R"({"prompt":"a","deadline_ms":3600000})");
  auto stream = start(R"({"prompt":"a","stream":true,"deadline_ms":3600000})");
  for (const std::size_t i : {0u, 1u}) {
    say(i, 300);
    say(i, 301);
    submissions_[i].stream->push({-1, flow::Finish::kLate});
  }
  test::take_events(*whole);
  EXPECT_EQ(whole->whole().status, 504);
  EXPECT_THAT(whole->whole().body, HasSubstr("before the answer was complete"));
  const std::vector<std::string> events = events_of(test::take_events(*stream));
  EXPECT_THAT(events.at(events.size() - 2), HasSubstr(R"("code":504)"));
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(WishedTest, AnObjectiveOfAnotherNameChangesNothing) {
  headers_ = {{"x-gateway-inference-objective", "food-review"}};
  auto completion = start(R"({"prompt":"a"})");
  EXPECT_EQ(submissions_[0].request.priority, 0);
}

}  // namespace
}  // namespace quire::api::test
