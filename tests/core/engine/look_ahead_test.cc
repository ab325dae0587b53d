// Two steps in flight: the next one is planned and submitted while one runs. Nobody can tell but by the clock.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>

#include "core/engine/engine.h"
#include "core/engine/engine_thread.h"
#include "tests/support/cases.h"
#include "tests/support/engine_rig.h"
#include "tests/support/late_runner.h"
#include "tests/support/plain_rules.h"
#include "tests/support/scripted_drafter.h"
#include "tests/support/toy_grammars.h"

namespace quire::engine::look_ahead_test {
namespace {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::LateRunner;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyRunner;
using Runs = LateRunner::Runs;

class LookAhead : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

std::shared_ptr<const sample::Rules> some_rules() {
  return std::make_shared<const sample::Rules>(sample::Rules{.repetition_penalty = 1.5f, .frequency_penalty = 0.5f});
}

// ---- whatever happens, and on a thread of its own

struct Coming {
  std::uint32_t iteration = 0;
  std::uint32_t length = 1;
  std::uint32_t stem = 0;
  std::uint32_t max_tokens = 1;
  Ask ask;
  int cancel_after = -1;  // turns
};

std::vector<Coming> coming(std::mt19937& random, std::uint32_t longest, std::uint32_t width) {
  std::vector<Coming> all(1 + random() % 8);
  std::uint32_t iteration = 0;
  for (Coming& one : all) {
    one.iteration = iteration += random() % 3;
    one.length = 1 + random() % (longest / 2);
    one.stem = random() % 3;
    one.max_tokens = 1 + random() % (longest - one.length);
    if (random() % 2 != 0) one.ask.params = {.temperature = 1.0f, .seed = random() % 100};
    one.ask.params.logprob = random() % 2 != 0;
    one.ask.params.num_top = random() % 4 == 0 ? 3 : 0;
    if (random() % 2 != 0) {  // a token that it will say, or may
      const auto answer = toy_answer(toy_prompt(one.length, one.stem), one.ask.params, one.max_tokens);
      one.ask.stop_tokens = {answer[random() % answer.size()]};
    }
    if (random() % 6 == 0) one.ask.rules = some_rules();
    if (random() % 12 == 0) {
      one.ask.params = {.temperature = 0.0f};
      one.ask.rules = nullptr;
      one.ask.beam = flow::BeamSearch{.width = 1 + static_cast<std::uint32_t>(random() % width), .num_best = 1};
    }
    if (random() % 5 == 0) one.cancel_after = static_cast<int>(random() % 6);
  }
  return all;
}

struct Received {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<std::vector<flow::Candidate>> tops;
  flow::Finish finish = flow::Finish::kNone;
};

std::vector<Received> receive(const std::vector<Coming>& all, const RigOptions& options, model::Runner& runner)
    REQUIRES(engine_role) {
  EngineRig rig(options, runner);
  std::vector<Client> clients;
  std::vector<std::uint64_t> since;
  const auto read = [&] {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      clients[i].read_all();
      const bool leaves =
          all[i].cancel_after >= 0 && rig.iterations >= since[i] + static_cast<unsigned>(all[i].cancel_after);
      if (leaves && !clients[i].done()) clients[i].stream->cancel();
    }
  };
  for (const Coming& one : all) {
    while (rig.iterations < one.iteration) {
      rig.iterate();
      read();
    }
    clients.push_back(rig.submit_many(toy_prompt(one.length, one.stem), one.max_tokens, one.ask)[0]);
    since.push_back(rig.iterations);
  }
  while (std::ranges::any_of(clients, [](const Client& client) { return !client.done(); })) {
    CHECK_LT(rig.iterations, 100000u);
    rig.iterate();
    read();
  }
  while (!rig.engine.idle()) rig.iterate();
  rig.iterate();  // the engine sleeps, and counts its blocks
  EXPECT_EQ(rig.pool.num_held(), 0u);
  EXPECT_EQ(rig.admission.waiting_sequences(), 0u);
  std::vector<Received> received;
  for (const Client& client : clients) received.push_back({client.tokens, client.logprobs, client.tops, client.finish});
  return received;
}

// All of it, or where somebody left what had been said by then.
void expect_same(const Received& one, const Received& other, bool left) {
  const std::size_t emitted = left ? std::min(one.tokens.size(), other.tokens.size()) : one.tokens.size();
  if (!left) {
    ASSERT_EQ(one.tokens.size(), other.tokens.size());
    ASSERT_EQ(one.finish, other.finish);
  }
  for (std::size_t i = 0; i < emitted; ++i) {
    ASSERT_EQ(one.tokens[i], other.tokens[i]) << "token " << i;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(one.logprobs[i]), std::bit_cast<std::uint32_t>(other.logprobs[i]));
    ASSERT_EQ(one.tops[i].size(), other.tops[i].size());
    for (std::size_t k = 0; k < one.tops[i].size(); ++k) {
      ASSERT_EQ(one.tops[i][k].token, other.tops[i][k].token);
      ASSERT_EQ(one.tops[i][k].logprob, other.tops[i][k].logprob);
    }
  }
}

TEST_F(LookAhead, TokensLogProbabilitiesAndEndsAreThoseOfOneStepAtATime) {
  constexpr std::uint32_t kSeeds = quire::testing::cases(1500);
  std::uint64_t num_ahead = 0;
  std::uint64_t num_fed = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    RigOptions options;
    options.block_tokens = 1u << (random() % 5);
    options.max_num_seqs = 1 + random() % 6;
    options.max_num_batched_tokens = std::max(2u, options.max_num_seqs) + random() % 20;
    options.max_model_len = 16 + random() % 60;
    options.num_blocks = kv::blocks_for(options.max_model_len, options.block_tokens) + random() % 6;
    options.num_swap_blocks = random() % 3 == 0 ? 8 : 0;
    options.prefix_caching = random() % 4 != 0;
    options.poison_blocks = random() % 4 == 0;
    options.check_blocks = true;
    const std::vector<Coming> all = coming(random, options.max_model_len, options.max_num_seqs);
    ToyRunner one_by_one(options.num_blocks, options.block_tokens);
    const std::vector<Received> expected = receive(all, options, one_by_one);
    ToyRunner toy(options.num_blocks, options.block_tokens);
    LateRunner late(toy, Runs::kOnAThread, 2, seed);
    const std::vector<Received> received = receive(all, options, late);
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      expect_same(received[i], expected[i], all[i].cancel_after >= 0);
      if (HasFatalFailure()) return;
    }
    num_ahead += late.num_ahead;
    num_fed += late.num_fed;
  }
  EXPECT_GT(num_ahead, 6 * kSeeds);
  EXPECT_GT(num_fed, 6 * kSeeds);
}

// The engine, its device and its clients, a thread each; somebody is always leaving, and at the end all are cut off.
TEST_F(LookAhead, ThreadsMeetWhereTheyMayAndNowhereElse) {
  ToyRunner toy(64, 4);
  LateRunner late(toy, Runs::kOnAThread);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4}, late);
  EngineThread thread(rig.engine, rig.doorbell, rig.status, [] {});
  thread.start();
  std::mt19937 random(1);
  for (std::uint32_t round = 0; round < 60; ++round) {
    std::vector<Client> clients;
    for (std::uint32_t i = 0; i < 4; ++i) {
      Ask ask;
      if (i == 1) ask.rules = some_rules();
      if (i == 2) ask.stop_tokens = {toy_answer(toy_prompt(6, i), EngineRig::greedy(), 9).back()};
      clients.push_back(rig.submit_many(toy_prompt(6, i), 20, ask)[0]);
    }
    const std::size_t leaves = random() % 4;
    while (std::ranges::any_of(clients, [](const Client& client) { return !client.done(); })) {
      for (Client& client : clients) client.read_all();
      if (clients[leaves].tokens.size() > 3 + random() % 4) clients[leaves].stream->cancel();
    }
    for (std::uint32_t i : {0u, 3u}) {
      if (i == leaves) continue;
      ASSERT_EQ(clients[i].tokens, toy_answer(toy_prompt(6, i), EngineRig::greedy(), 20)) << "round " << round;
    }
  }
  std::vector<Client> last{rig.submit(toy_prompt(6, 1), 100), rig.submit(toy_prompt(6, 2), 100)};
  while (last[0].tokens.size() < 3) last[0].read_all();
  thread.stop();
  for (Client& client : last) {
    client.read_all();
    EXPECT_TRUE(client.done());
  }
  EXPECT_EQ(rig.engine.num_live(), 0u);
  EXPECT_EQ(rig.pool.num_held(), 0u);
  EXPECT_GT(late.num_ahead, 100u);
}

// ---- what is in flight

struct Late {
  explicit Late(const RigOptions& options) : toy(options.num_blocks, options.block_tokens), rig(options, runner) {}
  std::uint32_t num_rows() const { return std::reduce(toy.rows_in_step.begin(), toy.rows_in_step.end()); }
  ToyRunner toy;
  LateRunner runner{toy, Runs::kWhenCollected};
  EngineRig rig;
};

TEST_F(LookAhead, EveryStepOfPlainSequencesButTheFirstIsSubmittedWhileOneRuns) {
  Late late({});
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 4; ++i) clients.push_back(late.rig.submit(toy_prompt(10, i), 30));
  late.rig.run(clients);
  EXPECT_EQ(late.runner.num_submitted, 30u);
  EXPECT_EQ(late.runner.num_ahead, 29u);
  EXPECT_EQ(late.runner.num_fed, 4u * 29u);
  EXPECT_EQ(late.rig.iterations, 31u) << "a turn a step, and one to collect the last";
  EXPECT_EQ(late.num_rows(), 4u * (10 + 29));
}

TEST_F(LookAhead, ALongPromptsChunksFollowEachOther) {
  Late late({.max_num_batched_tokens = 16});
  std::vector<Client> clients{late.rig.submit(toy_prompt(160, 1), 3)};
  late.rig.run(clients);
  EXPECT_EQ(late.runner.num_submitted, 10u + 2u);
  EXPECT_EQ(late.runner.num_ahead, 11u);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(160, 1), EngineRig::greedy(), 3));
}

TEST_F(LookAhead, WhoIsToEndWithMaxTokensHasNoRowBehindItsLast) {
  for (const std::uint32_t max_tokens : {1u, 2u, 3u}) {
    Late late({});
    std::vector<Client> clients{late.rig.submit(toy_prompt(10, 1), max_tokens)};
    late.rig.run(clients);
    EXPECT_EQ(late.num_rows(), 10u + max_tokens - 1);
    EXPECT_EQ(clients[0].tokens.size(), max_tokens);
    EXPECT_EQ(clients[0].finish, flow::Finish::kLength);
    EXPECT_TRUE(late.rig.engine.idle());
  }
}

TEST_F(LookAhead, AStoppedSequenceEmitsItsEndAtOnceAndHoldsItsBlocksUntilItsNextRowIsCollected) {
  const std::vector<TokenId> answer = toy_answer(toy_prompt(10, 1), EngineRig::greedy(), 30);
  for (const std::size_t num_tokens : {1u, 2u, 3u}) {
    Late late({});
    std::vector<Client> clients{late.rig.submit(toy_prompt(10, 1), 30, EngineRig::greedy(), {answer[num_tokens - 1]})};
    while (!clients[0].done()) {
      late.rig.iterate();
      clients[0].read_all();
    }
    EXPECT_EQ(clients[0].tokens, std::vector(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(num_tokens)));
    EXPECT_EQ(clients[0].finish, flow::Finish::kStop);
    EXPECT_EQ(late.rig.iterations, num_tokens + 1);
    EXPECT_FALSE(late.runner.idle());
    EXPECT_GT(late.rig.pool.num_held(), 0u) << "the step in flight stores into them";
    EXPECT_EQ(late.rig.metrics.success_stop.value(), 1u);
    late.rig.iterate();
    EXPECT_TRUE(late.runner.idle());
    EXPECT_EQ(late.rig.pool.num_held(), 0u);
    EXPECT_TRUE(late.rig.engine.idle());
    EXPECT_EQ(late.rig.metrics.generation_tokens.value(), num_tokens) << "nobody counts what it said behind its end";
    EXPECT_EQ(late.rig.metrics.success_stop.value(), 1u);
  }
}

TEST_F(LookAhead, WhoIsCancelledEndsInThatIterationAndIsGoneWithTheStepInFlight) {
  Late late({});
  std::vector<Client> clients{late.rig.submit(toy_prompt(10, 1), 30)};
  for (int iteration = 0; iteration < 4; ++iteration) late.rig.iterate();
  ASSERT_FALSE(late.runner.idle());
  clients[0].stream->cancel();
  late.rig.iterate();
  clients[0].read_all();
  EXPECT_EQ(clients[0].finish, flow::Finish::kCancelled);
  EXPECT_EQ(clients[0].tokens.size(), 3u) << "what the step in flight said is nobody's";
  EXPECT_TRUE(late.runner.idle());
  EXPECT_EQ(late.rig.pool.num_held(), 0u);
  EXPECT_EQ(late.runner.num_submitted, 4u);
  EXPECT_EQ(late.rig.metrics.disconnect_to_free_steps.sum(), 1.0);
}

TEST_F(LookAhead, WhoHasRulesSitsOutWhileItsTokenIsAwaitedAndHoldsNobodyUp) {
  Late late({});
  std::vector<Client> clients{late.rig.submit_many(toy_prompt(10, 1), 20, {.rules = some_rules()})[0]};
  late.rig.run(clients);
  EXPECT_EQ(late.runner.num_ahead, 0u) << "alone it is as with one step at a time";
  EXPECT_EQ(late.runner.num_submitted, 20u);

  Late both({});
  std::vector<Client> two{both.rig.submit_many(toy_prompt(10, 1), 20, {.rules = some_rules()})[0],
                          both.rig.submit(toy_prompt(10, 2), 40)};
  both.rig.run(two);
  EXPECT_EQ(both.runner.num_submitted, 40u) << "the plain one is in every step";
  EXPECT_EQ(both.runner.num_ahead, 39u);
  EXPECT_EQ(two[0].tokens, clients[0].tokens);
  EXPECT_EQ(two[1].tokens, toy_answer(toy_prompt(10, 2), EngineRig::greedy(), 40));
}

TEST_F(LookAhead, PromptsAreNotLetLooseOnStreamsThatSitOut) {
  Late late({.max_num_batched_tokens = 600});
  late.toy.clock = &late.rig.clock;
  late.toy.row_time =
      std::chrono::milliseconds(10);  // as many rows as fit in 100 ms while somebody streams, else in a second
  std::vector<Client> clients{late.rig.submit_many(toy_prompt(20, 1), 20, {.rules = some_rules()})[0]};
  while (late.runner.num_collected == 0) late.rig.iterate();
  clients.push_back(late.rig.submit(toy_prompt(500, 2), 1));
  for (int iteration = 0; iteration < 6; ++iteration) late.rig.iterate();
  ASSERT_GT(late.runner.num_ahead, 0u);
  for (std::size_t i = 1; i < late.toy.rows_in_step.size(); ++i) EXPECT_LE(late.toy.rows_in_step[i], 17u) << i;
  late.rig.run(clients);
}

TEST_F(LookAhead, NobodyIsSentBackBeforeAllIsCollected) {
  Late late({.num_blocks = 8, .block_tokens = 4});
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 3; ++i) clients.push_back(late.rig.submit(toy_prompt(4, i), 24));
  late.rig.run(clients);  // LateRunner looks whether blocks are held that are stored into
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(4, i), EngineRig::greedy(), 24));
  }
  EXPECT_GT(late.rig.engine.scheduler().num_preemptions(), 0u) << "the pool was meant to run dry";
  EXPECT_GT(late.runner.num_ahead, 20u);
}

TEST_F(LookAhead, AStreamIsNeverPushedPastItsRoom) {
  Late late({.num_blocks = 64});
  std::vector<Client> clients{late.rig.submit(toy_prompt(4, 1), 200)};
  for (int iteration = 0; iteration < 100; ++iteration) late.rig.iterate();
  EXPECT_EQ(late.rig.metrics.generation_tokens.value(), bridge::TokenStream::kCapacity - 1);
  late.rig.run(clients);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(4, 1), EngineRig::greedy(), 200));
}

TEST_F(LookAhead, AnOrderIsObeyedWhileSequencesRun) {
  Late late({});
  std::vector<Client> clients{late.rig.submit(toy_prompt(40, 1), 60)};
  for (int iteration = 0; iteration < 5; ++iteration) late.rig.iterate();
  bool done = false;
  const auto note = [&](const Result<bridge::CacheReport>& report) { done = report.ok(); };
  ASSERT_TRUE(late.rig.control.give({bridge::ControlOrder::Kind::kClearCache, "", note}).ok());
  late.rig.iterate();
  EXPECT_FALSE(done) << "a step is in flight";
  late.rig.iterate();
  EXPECT_TRUE(done);
  const std::uint64_t before = late.runner.num_ahead;
  late.rig.run(clients);
  EXPECT_GT(late.runner.num_ahead, before + 40) << "and on it goes";
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(40, 1), EngineRig::greedy(), 60));
}

TEST_F(LookAhead, WithADrafterOneStepIsInFlight) {
  const std::vector<TokenId> answer = toy_answer(toy_prompt(10, 1), EngineRig::greedy(), 30);
  std::vector<TokenId> text = toy_prompt(10, 1);
  text.insert(text.end(), answer.begin(), answer.end());
  quire::testing::ScriptedDrafter drafter({0.7, false, false, 4}, 997, {text});
  Late late({.drafter = &drafter, .max_draft_nodes = 4});
  std::vector<Client> clients{late.rig.submit(toy_prompt(10, 1), 30)};
  late.rig.run(clients);
  EXPECT_EQ(clients[0].tokens, answer);
  EXPECT_EQ(late.runner.num_ahead, 0u);
  EXPECT_LT(late.runner.num_submitted, 30u) << "guesses were taken";
}

TEST_F(LookAhead, HiddenStatesAreReadBeforeTheNextStepIsPlanned) {
  ToyRunner toy(64, 16);
  EngineRig rig({}, toy);
  const Ask ask{.pooling = flow::Pooling::kMean};
  std::vector<Client> expected{rig.submit_many(toy_prompt(200, 1), 0, ask)[0]};
  rig.run(expected);
  Late late({});
  std::vector<Client> clients{late.rig.submit(toy_prompt(5, 2), 60),
                              late.rig.submit_many(toy_prompt(200, 1), 0, ask)[0]};
  late.rig.run(clients);
  EXPECT_EQ(clients[1].stream->embedding()->sums, expected[0].stream->embedding()->sums);
  EXPECT_GT(late.runner.num_ahead, 0u);
}

TEST_F(LookAhead, WhoStopsTheEngineFindsNothingInFlight) {
  for (const bool broken : {false, true}) {
    Late late({});
    std::vector<Client> clients{late.rig.submit(toy_prompt(10, 1), 30), late.rig.submit(toy_prompt(10, 2), 30)};
    for (int iteration = 0; iteration < 4; ++iteration) late.rig.iterate();
    clients[1].stream->cancel();
    ASSERT_FALSE(late.runner.idle());
    late.toy.fail_next_collect = broken;
    late.rig.engine.abandon();
    for (Client& client : clients) client.read_all();
    EXPECT_EQ(clients[0].finish, flow::Finish::kFailed);
    EXPECT_EQ(clients[0].tokens.size(), 3u);
    EXPECT_TRUE(late.runner.idle());
    EXPECT_TRUE(late.rig.engine.idle());
    EXPECT_EQ(late.rig.pool.num_held(), 0u);
  }
}

}  // namespace
}  // namespace quire::engine::look_ahead_test
