// Deadlines, and what clients hope for: what ends because of them, what does not, and what is counted.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/engine/engine.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::deadline_test {
namespace {

using namespace std::chrono_literals;
using observe::Metrics;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyRunner;

class DeadlineTest : public ::testing::Test {
 protected:
  explicit DeadlineTest(const RigOptions& options = {.num_blocks = 64, .max_num_seqs = 1}) : rig_(options, runner_) {
    rig_.clock.advance(1s);  // time zero means never
  }
  Client submit(std::uint32_t max_tokens, const quire::testing::Ask& ask) {
    return rig_.submit_many(toy_prompt(5, 9), max_tokens, ask)[0];
  }
  void iterations(int count, Duration each = 10ms) REQUIRES(engine_role) {
    for (int i = 0; i < count; ++i) {
      rig_.iterate();
      rig_.clock.advance(each);
    }
  }
  std::uint64_t count(Metrics::Slo slo, Metrics::SloOutcome outcome) const {
    return rig_.metrics.slos[slo][outcome].value();
  }

  RoleScope role_{engine_role};
  ToyRunner runner_{64, 16};
  EngineRig rig_;
};

TEST_F(DeadlineTest, WhoWaitsPastItEndsWithoutHavingRun) {
  Client first = submit(1000, {});
  Client late = submit(5, {.deadline = rig_.clock.now() + 100ms});
  iterations(9);
  late.read_all();
  EXPECT_FALSE(late.done());
  iterations(3);
  late.read_all();
  EXPECT_EQ(late.finish, flow::Finish::kLate);
  EXPECT_TRUE(late.tokens.empty());
  EXPECT_EQ(rig_.engine.num_live(), 1u) << "the other goes on";
  EXPECT_EQ(rig_.admission.waiting_sequences(), 0u) << "its place in the line is free";
  EXPECT_EQ(late.stream->timeline()->end(), bridge::Timeline::End::kLate);
  EXPECT_EQ(count(Metrics::kDeadline, Metrics::kMissed), 1u);
}

TEST_F(DeadlineTest, ASequencePastItKeepsItsTokensAndReleasesItsBlocksInThatIteration) {
  Client client = submit(1000, {.deadline = rig_.clock.now() + 200ms});
  iterations(20);
  EXPECT_EQ(rig_.engine.num_live(), 1u);
  EXPECT_GT(rig_.pool.num_held(), 0u);
  iterations(1);
  EXPECT_EQ(rig_.engine.num_live(), 0u);
  EXPECT_EQ(rig_.pool.num_held(), 0u);
  client.read_all();
  EXPECT_EQ(client.finish, flow::Finish::kLate);
  const auto whole = toy_answer(toy_prompt(5, 9), EngineRig::greedy(), 40);
  ASSERT_EQ(client.tokens.size(), 20u);
  EXPECT_TRUE(std::equal(client.tokens.begin(), client.tokens.end(), whole.begin())) << "no token is another one";
}

TEST_F(DeadlineTest, ItIsOverAtItsTimeAndNotBefore) {
  for (const Duration early : {1ns, 0ns, -1ns}) {  // of the turn
    Client client = submit(1000, {.deadline = rig_.clock.now() + 10ms});
    iterations(1, 10ms - early);
    rig_.iterate();
    client.read_all();
    EXPECT_EQ(client.done(), early <= 0ns) << early.count();
    client.stream->cancel();
    rig_.iterate();
  }
}

TEST_F(DeadlineTest, OneThatIsKeptChangesNothing) {
  Client client = submit(30, {.deadline = rig_.clock.now() + 1h});
  iterations(40);
  client.read_all();
  EXPECT_EQ(client.finish, flow::Finish::kLength);
  EXPECT_EQ(client.tokens, toy_answer(toy_prompt(5, 9), EngineRig::greedy(), 30));
  EXPECT_EQ(count(Metrics::kDeadline, Metrics::kKept), 1u);
}

TEST_F(DeadlineTest, OfAPausedStreamItEndsInTheSleepThatWaitsForIt) {
  Client client = submit(500, {.deadline = rig_.clock.now() + 5s});
  iterations(200);  // it does not read: parked by now, at two seconds
  EXPECT_EQ(rig_.engine.num_live(), 1u);
  rig_.clock.advance(5s);
  rig_.iterate();
  EXPECT_EQ(rig_.engine.num_live(), 0u);
  client.read_all();
  EXPECT_EQ(client.finish, flow::Finish::kLate);
  EXPECT_EQ(client.tokens.size(), bridge::TokenStream::kCapacity - 1);
}

class DeadlineOfASearchTest : public DeadlineTest {
 protected:
  DeadlineOfASearchTest() : DeadlineTest({.num_blocks = 64, .max_num_seqs = 4}) {}
};

TEST_F(DeadlineOfASearchTest, EndsAllItsAnswersAndItsHypotheses) {
  auto clients = rig_.submit_many(toy_prompt(5, 9), 400,
                                  {.deadline = rig_.clock.now() + 100ms, .beam = flow::BeamSearch{3, 2, 1.0}});
  iterations(9);
  EXPECT_GT(rig_.engine.num_live(), 0u);
  iterations(3);
  EXPECT_TRUE(rig_.engine.idle());
  EXPECT_EQ(rig_.pool.num_held(), 0u);
  for (Client& client : clients) {
    client.read_all();
    EXPECT_EQ(client.finish, flow::Finish::kLate);
  }
}

TEST_F(DeadlineTest, WhatIsHopedForEndsNothingAndIsCounted) {
  Client slow = submit(11, {.first_token_by = rig_.clock.now() + 1ns, .token_time = 9ms});
  iterations(20);
  Client quick = submit(11, {.first_token_by = rig_.clock.now() + 1s, .token_time = 10ms});
  iterations(20);
  for (Client* client : {&slow, &quick}) {
    client->read_all();
    EXPECT_EQ(client->finish, flow::Finish::kLength);
    EXPECT_EQ(client->tokens.size(), 11u);
  }
  EXPECT_EQ(count(Metrics::kTokenTime, Metrics::kMissed), 1u);
  EXPECT_EQ(count(Metrics::kTokenTime, Metrics::kKept), 1u);
  EXPECT_EQ(count(Metrics::kFirstToken, Metrics::kKept), 2u) << "the first was said at once, in time that stood still";
  EXPECT_EQ(count(Metrics::kDeadline, Metrics::kKept) + count(Metrics::kDeadline, Metrics::kMissed), 0u);
}

TEST_F(DeadlineTest, AFirstTokenThatIsLateIsCountedAndAClientThatLeftIsNot) {
  Client first = submit(40, {});
  Client waits = submit(3, {.first_token_by = rig_.clock.now() + 100ms});
  Client leaves = submit(3, {.first_token_by = rig_.clock.now() + 100ms});
  iterations(10);
  leaves.stream->cancel();
  iterations(50);
  waits.read_all();
  EXPECT_EQ(waits.tokens.size(), 3u);
  EXPECT_EQ(count(Metrics::kFirstToken, Metrics::kMissed), 1u);
  EXPECT_EQ(count(Metrics::kFirstToken, Metrics::kKept), 0u);
}

// ---- what the engine measures of itself

TEST_F(DeadlineTest, ItsPaceIsWhatItTook) {
  Client client = submit(11, {});
  iterations(20, 10ms);
  const bridge::Rates rates = rig_.admission.load_estimate().rates();
  EXPECT_NEAR(rates.token_s, 0.010, 1e-9);
  EXPECT_NEAR(rates.start_s, 0.100, 1e-9) << "ten turns behind the first";
  EXPECT_EQ(rates.answer_tokens, 11.0);
  EXPECT_EQ(rates.computed, 1.0);
}

TEST_F(DeadlineTest, AnAbortedAnswerDoesNotCountInTheEstimatedLengthOfAnswers) {
  Client client = submit(1000, {});
  iterations(5);
  client.stream->cancel();
  iterations(2);
  EXPECT_EQ(rig_.admission.load_estimate().rates().answer_tokens, 0.0);
  EXPECT_GT(rig_.admission.load_estimate().rates().start_s, 0.0) << "its place came free";
}

}  // namespace
}  // namespace quire::engine::deadline_test
