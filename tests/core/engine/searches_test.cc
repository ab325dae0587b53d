// Beam searches in the engine: the hypotheses are those of the search on tokens alone, whatever pool they ran in.
#include <gtest/gtest.h>

#include "core/engine/beam/beam.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::search_test {
namespace {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::toy_prompt;
using quire::testing::ToyModel;
using quire::testing::ToyPast;
using quire::testing::ToyRunner;

// The search on tokens alone.
std::vector<Hypothesis> expected(const std::vector<TokenId>& prompt, const flow::BeamSearch& options,
                                 std::uint32_t max_tokens, const std::vector<TokenId>& stops) {
  Beam beam(options, max_tokens, stops);
  std::vector<std::vector<TokenId>> live{prompt};
  while (!live.empty()) {
    std::vector<std::vector<sample::Candidate>> offers;
    for (const auto& tokens : live) {
      ToyPast past;
      for (const TokenId token : tokens) past.push(token);
      offers.emplace_back();
      quire::testing::toy_top(past.hash(), Beam::num_candidates(options, stops.size()), {}, offers.back());
    }
    std::vector<std::vector<TokenId>> next;
    for (const Beam::Continuation& step : beam.advance(offers)) {
      next.push_back(live[step.parent]);
      next.back().push_back(step.token);
    }
    live = std::move(next);
  }
  return {beam.best().begin(), beam.best().end()};
}

void expect_best(const std::vector<Client>& clients, const std::vector<Hypothesis>& best) {
  ASSERT_EQ(clients.size(), best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(clients[i].tokens, best[i].tokens) << "best " << i;
    EXPECT_EQ(clients[i].logprobs, best[i].logprobs);
    EXPECT_EQ(clients[i].finish, best[i].finish);
  }
}

class SearchTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

TEST_F(SearchTest, GivesTheBestHypothesesOfTheSearchOnTokensAlone) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint32_t width = 1 + seed % 6;
    const flow::BeamSearch options{width, 1 + seed % width, seed % 3 * 0.5};
    const std::uint32_t max_tokens = 1 + seed % 20;
    const auto prompt = toy_prompt(1 + seed * 3, seed);
    const std::vector<TokenId> stops{5, 6, 7, 8, 9, 10};
    ToyRunner runner(128, 4);
    EngineRig rig({.num_blocks = 128, .block_tokens = 4, .max_num_batched_tokens = 16, .check_blocks = true}, runner);
    auto clients = rig.submit_many(prompt, max_tokens, {.stop_tokens = stops, .beam = options});
    rig.run(clients);
    expect_best(clients, expected(prompt, options, max_tokens, stops));
    EXPECT_TRUE(rig.engine.idle());
    EXPECT_EQ(rig.pool.num_held(), 0u);
  }
}

TEST_F(SearchTest, InAPoolThatHoldsOneSequenceItStillEndsWithTheSameAnswer) {
  const flow::BeamSearch options{4, 4, 1.0};
  const auto prompt = toy_prompt(10, 3);
  ToyRunner runner(8, 4);  // 32 tokens: one sequence, not four
  EngineRig rig({.num_blocks = 8, .block_tokens = 4, .max_num_batched_tokens = 16, .check_blocks = true}, runner);
  auto clients = rig.submit_many(prompt, 22, {.beam = options});
  rig.run(clients);
  expect_best(clients, expected(prompt, options, 22, {}));
  EXPECT_GT(rig.metrics.preemptions.value(), 0u) << "it was meant to be tight";
}

TEST_F(SearchTest, BesideOthersNeitherIsChanged) {
  const flow::BeamSearch options{3, 2, 1.0};
  const auto prompt = toy_prompt(30, 3);
  ToyRunner runner(24, 4);
  EngineRig rig({.num_blocks = 24, .block_tokens = 4, .max_num_seqs = 4, .max_num_batched_tokens = 9}, runner);
  auto clients = rig.submit_many(prompt, 22, {.beam = options});
  for (std::uint32_t i = 0; i < 6; ++i) clients.push_back(rig.submit(toy_prompt(30, i), 20));
  auto second = rig.submit_many(prompt, 22, {.beam = options});
  clients.insert(clients.end(), second.begin(), second.end());
  rig.run(clients);
  const auto best = expected(prompt, options, 22, {});
  expect_best({clients[0], clients[1]}, best);
  expect_best({clients[8], clients[9]}, best);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(clients[2 + i].tokens, quire::testing::toy_answer(toy_prompt(30, i), EngineRig::greedy(), 20));
  }
}

TEST_F(SearchTest, HypothesesShareThePromptAndCopyOnTheirFirstWrite) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  auto clients = rig.submit_many(toy_prompt(100, 1), 3, {.beam = flow::BeamSearch{4, 1, 1.0}});
  rig.iterate();
  EXPECT_EQ(rig.pool.num_held(), 7u);
  rig.iterate();
  EXPECT_EQ(runner.copies, 3u) << "the last of the four writes where they all stood";
  rig.run(clients);
}

TEST_F(SearchTest, ALongAnswerIsEmittedAsFastAsItsClientReads) {
  const flow::BeamSearch options{2, 2, 1.0};
  const auto prompt = toy_prompt(5, 3);
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  auto clients = rig.submit_many(prompt, 200, {.beam = options});
  for (int iteration = 0; iteration < 300; ++iteration) rig.iterate();
  EXPECT_FALSE(rig.engine.idle());
  EXPECT_EQ(rig.pool.num_held(), 0u) << "telling needs no block";
  rig.run(clients);
  expect_best(clients, expected(prompt, options, 200, {}));
}

TEST_F(SearchTest, AClientThatNeverReadsIsDroppedAfterTheStallTimeout) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  auto clients = rig.submit_many(toy_prompt(5, 3), 200, {.beam = flow::BeamSearch{2, 2, 1.0}});
  for (int iteration = 0; iteration < 300; ++iteration) rig.iterate();
  rig.clock.advance(std::chrono::seconds(29));
  rig.iterate();
  EXPECT_FALSE(rig.engine.idle());
  rig.clock.advance(std::chrono::seconds(1));
  rig.iterate();
  EXPECT_TRUE(rig.engine.idle());
  for (Client& client : clients) {
    client.read_all();
    EXPECT_EQ(client.finish, flow::Finish::kCancelled);
  }
}

TEST_F(SearchTest, CancelledByAllItsClientsItGivesEverythingBackInOneIteration) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  auto clients = rig.submit_many(toy_prompt(50, 3), 200, {.beam = flow::BeamSearch{4, 3, 1.0}});
  for (int iteration = 0; iteration < 10; ++iteration) rig.iterate();
  EXPECT_GE(rig.pool.num_held(), 4u);
  clients[0].stream->cancel();
  rig.iterate();
  EXPECT_FALSE(rig.engine.idle()) << "the others still wait";
  clients[1].stream->cancel();
  clients[2].stream->cancel();
  rig.iterate();
  EXPECT_TRUE(rig.engine.idle());
  EXPECT_EQ(rig.pool.num_held(), 0u);
}

TEST_F(SearchTest, LogitsThatAreNotFiniteEndTheWholeSearchAlone) {
  ToyRunner runner(64, 16);
  runner.poisoned_seed = 666;
  EngineRig rig({.num_blocks = 64}, runner);
  auto clients = rig.submit_many(toy_prompt(50, 3), 20,
                                 {.params = {.temperature = 0.0f, .seed = 666}, .beam = flow::BeamSearch{4, 2, 1.0}});
  clients.push_back(rig.submit(toy_prompt(5, 1), 20));
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, flow::Finish::kFailed);
  EXPECT_EQ(clients[1].finish, flow::Finish::kFailed);
  EXPECT_EQ(clients[2].finish, flow::Finish::kLength);
  EXPECT_EQ(rig.metrics.corrupted_requests.value(), 1u);
}

TEST_F(SearchTest, AsWideAsThereArePlacesItRecomputesNothing) {
  std::uint64_t rows[2];
  for (const std::uint32_t places : {4u, 16u}) {
    ToyRunner runner(64, 16);
    EngineRig rig({.num_blocks = 64, .max_num_seqs = places, .max_num_batched_tokens = 256}, runner);
    auto clients = rig.submit_many(toy_prompt(30, 3), 60, {.beam = flow::BeamSearch{4, 1, 1.0}});
    rig.run(clients);
    rows[places == 16] = 0;
    for (const std::uint32_t n : runner.rows_in_step) rows[places == 16] += n;
  }
  EXPECT_EQ(rows[0], rows[1]);
}

TEST_F(SearchTest, AForkThatFindsNoPlaceStandsInLineWhereItsSearchArrived) {
  ToyRunner runner(256, 16);
  EngineRig rig({.num_blocks = 256, .max_num_seqs = 4, .max_num_batched_tokens = 64}, runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(20, 1), 20, {.beam = flow::BeamSearch{2, 1, 1.0}});
  for (std::uint32_t i = 0; i < 60; ++i) clients.push_back(rig.submit(toy_prompt(20, i), 20));
  rig.run(clients);
  std::uint32_t before = 0;
  for (const Client& client : clients) before += client.finished_at_step < clients[0].finished_at_step ? 1 : 0;
  EXPECT_LE(before, 8u) << "those that ran beside it, not those that came later";
}

TEST_F(SearchTest, EveryStreamOfARefusedSearchEndsAndIsCounted) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_seqs = 8}, runner);
  auto clients = rig.submit_many(toy_prompt(5, 3), 4, {.beam = flow::BeamSearch{9, 3, 1.0}});
  rig.run(clients);
  for (const Client& client : clients) EXPECT_EQ(client.finish, flow::Finish::kFailed);
  EXPECT_EQ(rig.metrics.success_error.value(), clients.size()) << "every stream's end is counted";
}

TEST_F(SearchTest, WiderThanTheEngineRunsItIsRefused) {
  for (const std::uint32_t width : {7u, 8u, 9u}) {
    ToyRunner runner(64, 16);
    EngineRig rig({.num_blocks = 64, .max_num_seqs = 8}, runner);
    auto clients = rig.submit_many(toy_prompt(5, 3), 4, {.beam = flow::BeamSearch{width, 1, 1.0}});
    rig.run(clients);
    EXPECT_EQ(clients[0].finish == flow::Finish::kFailed, width > 8) << width;
  }
}

}  // namespace
}  // namespace quire::engine::search_test
