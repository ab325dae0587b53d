#include "core/engine/step_reporter.h"

#include <gtest/gtest.h>

#include "tests/core/engine/live_rig.h"

namespace quire::engine::step_reporter_test {
namespace {

using std::chrono::milliseconds;

class StepReporterTest : public ::testing::Test {
 protected:
  static std::uint64_t count_of(const observe::Histogram& histogram) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) count += histogram.count(i);
    return count;
  }

  const RoleScope role_{engine_role};
  LiveRig rig_;
  observe::Metrics& metrics_ = rig_.metrics;
  bridge::LoadEstimate load_estimate_;
  StepReporter reporter_{rig_.metrics, load_estimate_};
};

TEST_F(StepReporterTest, TimesTheFirstTokenFromTheArrivalAndEveryOtherFromTheOneBefore) {
  Live& live = rig_.decoding({1, 2, 3}, 50, 4);
  const TimePoint arrival = live.sequence.request().arrival;
  live.first_run = arrival + milliseconds(10);
  reporter_.note_token(live, arrival + milliseconds(30));
  EXPECT_DOUBLE_EQ(metrics_.time_to_first_token_s.sum(), 0.030);
  EXPECT_DOUBLE_EQ(metrics_.request_prefill_time_s.sum(), 0.020);
  EXPECT_EQ(count_of(metrics_.inter_token_latency_s), 0u);
  reporter_.note_token(live, arrival + milliseconds(50));
  reporter_.note_token(live, arrival + milliseconds(90));
  EXPECT_EQ(count_of(metrics_.inter_token_latency_s), 2u);
  EXPECT_NEAR(metrics_.inter_token_latency_s.sum(), 0.060, 1e-12);
  EXPECT_EQ(metrics_.generation_tokens.value(), 3u);
  EXPECT_EQ(load_estimate_.rates().token_s, 0.0) << "the estimate learns at the end of the commit";
  reporter_.end_commit();
  EXPECT_NEAR(load_estimate_.rates().token_s, 0.030, 1e-12);
}

TEST_F(StepReporterTest, CountsAPromptOnceAndOnlyWhenAllOfItIsComputed) {
  Live& live = rig_.add({1, 2, 3, 4, 5}, 50);
  live.num_cached = 2;
  ASSERT_TRUE(live.sequence.table.grow_to(5).ok());
  for (const std::uint64_t expected : {0u, 0u, 0u, 0u, 5u}) {
    live.sequence.progress.commit(1);
    reporter_.note_prompt(live);
    EXPECT_EQ(metrics_.prompt_tokens.value(), expected);
  }
  reporter_.note_prompt(live);
  EXPECT_EQ(metrics_.prompt_tokens.value(), 5u);
  EXPECT_EQ(metrics_.prompt_tokens_cached.value(), 2u);
}

TEST_F(StepReporterTest, CountsEveryEndUnderItsReason) {
  struct Case {
    flow::Finish finish;
    bool satisfied;
    observe::Counter observe::Metrics::*counter;
  };
  const Case cases[] = {{flow::Finish::kStop, false, &observe::Metrics::success_stop},
                        {flow::Finish::kComplete, false, &observe::Metrics::success_stop},
                        {flow::Finish::kLength, false, &observe::Metrics::success_length},
                        {flow::Finish::kScored, false, &observe::Metrics::success_length},
                        {flow::Finish::kCancelled, false, &observe::Metrics::success_abort},
                        {flow::Finish::kCancelled, true, &observe::Metrics::success_stop},
                        {flow::Finish::kLate, false, &observe::Metrics::success_abort},
                        {flow::Finish::kNoToken, false, &observe::Metrics::success_error},
                        {flow::Finish::kFailed, false, &observe::Metrics::success_error}};
  for (const Case& one : cases) {
    const std::shared_ptr<bridge::TokenStream> stream = rig_.hub->open([] {});
    if (one.satisfied) stream->satisfy();
    const std::uint64_t before = (metrics_.*one.counter).value();
    const auto all = [this] {
      return metrics_.success_stop.value() + metrics_.success_length.value() + metrics_.success_abort.value() +
             metrics_.success_error.value();
    };
    const std::uint64_t all_before = all();
    reporter_.note_stream_end(*stream, one.finish, rig_.clock.now());
    EXPECT_EQ((metrics_.*one.counter).value(), before + 1) << static_cast<int>(one.finish);
    EXPECT_EQ(all(), all_before + 1) << static_cast<int>(one.finish);
  }
}

// The request wants its first token within 100 ms, 10 ms a token, and all of it within 200 ms.
TEST_F(StepReporterTest, MeetsAnObjectiveAtItsLimitAndMissesItBehind) {
  using Metrics = observe::Metrics;
  struct Case {
    int first_ms;
    int last_ms;  // of three tokens
    int end_ms;
    flow::Finish finish;
    int first_kept;  // 1: met, 0: missed, -1: not counted
    int tokens_kept;
    int deadline_kept;
  };
  const Case cases[] = {
      {99, 119, 199, flow::Finish::kLength, 1, 1, 1},  {100, 120, 200, flow::Finish::kLength, 1, 1, 1},
      {101, 121, 200, flow::Finish::kLength, 0, 1, 1}, {100, 121, 200, flow::Finish::kLength, 1, 0, 1},
      {100, 120, 201, flow::Finish::kLength, 1, 1, 0}, {100, 120, 150, flow::Finish::kFailed, 1, 0, 0},
      {100, 120, 200, flow::Finish::kLate, 1, 0, 0},   {100, 120, 150, flow::Finish::kCancelled, -1, -1, -1}};
  const auto counts = [this](Metrics::Slo slo) {
    return std::pair(metrics_.slos[slo][Metrics::kKept].value(), metrics_.slos[slo][Metrics::kMissed].value());
  };
  for (const Case& one : cases) {
    const TimePoint arrival = rig_.clock.now();
    bridge::Submission submission;
    submission.request.prompt = {1, 2, 3};
    submission.request.max_tokens = 50;
    submission.request.arrival = arrival;
    submission.request.first_token_by = arrival + milliseconds(100);
    submission.request.token_time = milliseconds(10);
    submission.request.deadline = arrival + milliseconds(200);
    submission.stream = rig_.hub->open([] {});
    Live& live = *rig_.live_sequences.add(submission);
    ASSERT_TRUE(live.sequence.reserve_memory());
    for (const TokenId token : {7, 8, 9}) ASSERT_EQ(live.sequence.append(token), flow::Finish::kNone);
    live.first_run = arrival;
    live.first_token = arrival + milliseconds(one.first_ms);
    live.last_token = arrival + milliseconds(one.last_ms);
    if (one.finish == flow::Finish::kCancelled) live.stream->cancel();
    const auto first = counts(Metrics::kFirstToken), tokens = counts(Metrics::kTokenTime),
               deadline = counts(Metrics::kDeadline);
    reporter_.note_end(live, one.finish, arrival + milliseconds(one.end_ms), 1);
    const auto expect = [&](Metrics::Slo slo, std::pair<std::uint64_t, std::uint64_t> before, int kept) {
      if (kept == 1) ++before.first;
      if (kept == 0) ++before.second;
      EXPECT_EQ(counts(slo), before) << "objective " << slo << " of case " << &one - cases;
    };
    expect(Metrics::kFirstToken, first, one.first_kept);
    expect(Metrics::kTokenTime, tokens, one.tokens_kept);
    expect(Metrics::kDeadline, deadline, one.deadline_kept);
  }
}

TEST_F(StepReporterTest, LearnsTheTimeOfARowFromStepsOfManyRowsOnly) {
  flow::StepPlan plan;
  plan.tokens.resize(15);
  reporter_.note_step(plan, milliseconds(30));
  EXPECT_EQ(load_estimate_.rates().row_s, 0.0);
  plan.tokens.resize(16);
  reporter_.note_step(plan, milliseconds(32));
  EXPECT_NEAR(load_estimate_.rates().row_s, 0.002, 1e-12);
  EXPECT_EQ(metrics_.engine_steps.value(), 2u);
}

TEST_F(StepReporterTest, PublishesWhatSchedulerAndPoolCountWithoutCountingItTwice) {
  {
    Live& live = rig_.add({1, 2, 3}, 5);
    ASSERT_TRUE(live.sequence.table.grow_to(40).ok());
    reporter_.publish(rig_.scheduler, rig_.pool, 1);
    EXPECT_EQ(metrics_.kv_blocks_held.value(), 3.0);
    EXPECT_EQ(metrics_.kv_blocks_pinned.value(), 1.0);
    EXPECT_EQ(metrics_.kv_blocks_freed.value(), 0u);
    live.sequence.table.give_back_all();
  }
  for (int i = 0; i < 3; ++i) reporter_.publish(rig_.scheduler, rig_.pool, 0);
  EXPECT_EQ(metrics_.kv_blocks_held.value(), 0.0);
  EXPECT_EQ(metrics_.kv_blocks_freed.value(), rig_.pool.num_given_back());
}

}  // namespace
}  // namespace quire::engine::step_reporter_test
