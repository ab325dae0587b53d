// Prompts that are scored, on the toy model: every token but the first gets its log probability, rank and candidates,
// however its rows were cut, and nobody waits for it longer than for another.
#include "core/bridge/prompt_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/support/engine_rig.h"

namespace quire::engine::prompt_scores_test {
namespace {

using flow::Finish;
using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_logprob;
using quire::testing::toy_prompt;
using quire::testing::toy_rank;
using quire::testing::ToyModel;
using quire::testing::ToyPast;
using quire::testing::ToyRunner;

const ToyModel kSmall{.vocab = 61};

void expect_scores(const Client& client, const std::vector<TokenId>& prompt, std::uint32_t num_top) {
  const bridge::PromptScores& scores = *client.stream->scores();
  ASSERT_EQ(scores.logprobs.size(), prompt.size() - 1);
  ToyPast past(kSmall);
  for (std::size_t i = 0; i + 1 < prompt.size(); ++i) {
    past.push(prompt[i]);
    ASSERT_EQ(scores.logprobs[i], toy_logprob(past.hash(), prompt[i + 1])) << i;
    ASSERT_EQ(scores.ranks[i], toy_rank(past.hash(), prompt[i + 1], kSmall)) << i;
    std::vector<sample::Candidate> expected;
    if (num_top > 0) toy_top(past.hash(), num_top, kSmall, expected);
    for (std::size_t k = 0; k < scores.num_top; ++k) {
      ASSERT_EQ(scores.top_of(i)[k].token, k < expected.size() ? expected[k].token : -1);
      ASSERT_EQ(scores.top_of(i)[k].logprob, k < expected.size() ? expected[k].logprob : 0.0f);
    }
  }
}

class PromptScoresTest : public ::testing::Test {
 protected:
  static Ask scored(std::uint32_t num_top = 0) {
    return {.params = {.temperature = 0.0f, .num_top = num_top}, .scores_prompt = true};
  }
  static RigOptions small() { return {.num_blocks = 64, .block_tokens = 4, .vocab = 61}; }

  RoleScope role_{engine_role};
};

TEST_F(PromptScoresTest, AreThoseOfEveryTokenButTheFirst) {
  for (const std::uint32_t length : {1u, 2u, 3u, 40u}) {
    for (const std::uint32_t num_top : {0u, 1u, 5u, 70u}) {
      ToyRunner runner(64, 4, kSmall);
      EngineRig rig(small(), runner);
      std::vector<Client> clients = rig.submit_many(toy_prompt(length, 1, kSmall), 10, scored(num_top));
      rig.run(clients);
      expect_scores(clients[0], toy_prompt(length, 1, kSmall), num_top);
      EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(length, 1, kSmall), EngineRig::greedy(), 10, kSmall));
    }
  }
}

TEST_F(PromptScoresTest, WithoutATokenToGenerateTheStreamEndsWithTheScoresAlone) {
  for (const std::uint32_t length : {1u, 2u, 64u * 4u}) {  // the last: as long as the model takes
    ToyRunner runner(64, 4, kSmall);
    EngineRig rig(small(), runner);
    std::vector<Client> clients = rig.submit_many(toy_prompt(length, 1, kSmall), 0, scored(2));
    rig.run(clients);
    EXPECT_EQ(clients[0].finish, Finish::kScored);
    EXPECT_TRUE(clients[0].tokens.empty());
    expect_scores(clients[0], toy_prompt(length, 1, kSmall), 2);
    std::uint32_t rows = 0;
    for (const std::uint32_t in_step : runner.rows_in_step) rows += in_step;
    EXPECT_EQ(rows, length) << "no row beyond the prompt's";
    EXPECT_EQ(rig.metrics.generation_tokens.value(), 0u);
    EXPECT_EQ(rig.metrics.success_length.value(), 1u);
    EXPECT_EQ(rig.pool.num_held(), 0u);
  }
}

TEST_F(PromptScoresTest, TakeNoMoreRowsOfLogitsInAStepThanThereAre) {
  for (const std::uint32_t logit_rows : {8u, 9u, 20u}) {
    RigOptions options = small();
    options.max_logits_rows = logit_rows;  // the toy checks it
    ToyRunner runner(64, 4, kSmall);
    EngineRig rig(options, runner);
    std::vector<Client> clients = rig.submit_many(toy_prompt(40, 1, kSmall), 0, scored());
    rig.run(clients);
    EXPECT_EQ(*std::ranges::max_element(runner.rows_in_step), logit_rows);
    expect_scores(clients[0], toy_prompt(40, 1, kSmall), 0);
  }
}

TEST_F(PromptScoresTest, ReadNoCacheAndFillItForOthers) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(40, 1, kSmall), 1, {});
  rig.run(clients);
  clients = rig.submit_many(toy_prompt(40, 1, kSmall), 0, scored());
  rig.run(clients);
  EXPECT_EQ(clients[0].stream->cached_tokens(), 0u);
  expect_scores(clients[0], toy_prompt(40, 1, kSmall), 0);

  EngineRig other(small(), runner);
  clients = other.submit_many(toy_prompt(30, 2, kSmall), 0, scored());
  other.run(clients);
  clients = other.submit_many(toy_prompt(30, 2, kSmall), 1, {});
  other.run(clients);
  EXPECT_EQ(clients[0].stream->cached_tokens(), 29u);
}

TEST_F(PromptScoresTest, WaitForNobodyWhoComputesTheSamePrompt) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(100, 1, kSmall), 3, {});
  clients.push_back(rig.submit_many(toy_prompt(100, 1, kSmall), 3, scored())[0]);
  clients.push_back(rig.submit_many(toy_prompt(100, 1, kSmall), 3, {})[0]);
  rig.run(clients);
  EXPECT_EQ(clients[1].stream->cached_tokens(), 0u);
  EXPECT_EQ(clients[2].stream->cached_tokens(), 99u) << "it waited for the first";
  expect_scores(clients[1], toy_prompt(100, 1, kSmall), 0);
}

TEST_F(PromptScoresTest, AreTheSameAfterPreemptions) {
  for (const std::uint32_t swap : {0u, 32u}) {
    RigOptions options = small();
    options.num_blocks = 24;
    options.num_swap_blocks = swap;
    options.max_num_batched_tokens = 12;
    ToyRunner runner(24, 4, kSmall);
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    for (std::uint32_t i = 0; i < 6; ++i)
      clients.push_back(rig.submit_many(toy_prompt(20, i, kSmall), 30, scored(2))[0]);
    std::uint64_t iterations = 0;
    const auto done = [&] { return std::ranges::all_of(clients, &Client::done); };
    while (!done() && iterations < 10000) {
      if (++iterations % 5 == 0) rig.engine.preempt_all();
      rig.iterate();
      for (Client& client : clients) client.read_all();
    }
    EXPECT_GT(rig.engine.scheduler().num_preemptions(), 0u);
    for (std::uint32_t i = 0; i < 6; ++i) {
      expect_scores(clients[i], toy_prompt(20, i, kSmall), 2);
      EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(20, i, kSmall), EngineRig::greedy(), 30, kSmall));
    }
  }
}

TEST_F(PromptScoresTest, ARowThatIsNotFiniteFailsThatRequestAlone) {
  for (const std::uint32_t bad : {0u, 5u, 38u, 39u}) {
    ToyRunner runner(64, 4, kSmall);
    runner.poisoned_token = 60;
    EngineRig rig(small(), runner);
    std::vector<TokenId> prompt = toy_prompt(40, 1, kSmall);
    std::ranges::replace(prompt, 60, 59);
    const std::vector<TokenId> good = prompt;
    prompt[bad] = 60;
    std::vector<Client> clients = rig.submit_many(prompt, 0, scored());
    clients.push_back(rig.submit_many(good, 0, scored())[0]);
    rig.run(clients);
    EXPECT_EQ(clients[0].finish, Finish::kFailed);
    EXPECT_EQ(clients[1].finish, Finish::kScored);
    expect_scores(clients[1], good, 0);
    EXPECT_EQ(rig.metrics.corrupted_requests.value(), 1u);
    EXPECT_EQ(rig.pool.num_held(), 0u);
  }
}

TEST_F(PromptScoresTest, HoldNobodyUpAndAreHeldUpByNobody) {
  RigOptions options = small();
  options.num_blocks = 256;
  options.max_num_batched_tokens = 32;
  ToyRunner runner(256, 4, kSmall);
  EngineRig rig(options, runner);
  // Seven streams decode in eight places; a long prompt to be scored comes, and a short one behind it.
  std::vector<Client> streams;
  for (std::uint32_t i = 0; i < 6; ++i) streams.push_back(rig.submit(toy_prompt(3, i, kSmall), 60));
  rig.iterate();
  rig.iterate();
  std::vector<Client> late = rig.submit_many(toy_prompt(50, 9, kSmall), 0, scored());
  late.push_back(rig.submit(toy_prompt(2, 10, kSmall), 1));
  const std::uint64_t before = rig.iterations;
  rig.run(late);
  // Eight rows of logits: six streams take theirs, the scored prompt one, and there is one for who waits.
  EXPECT_LE(late[1].finished_at_step - before, 3u);
  EXPECT_LE(late[0].finished_at_step - before, 50u);
  for (Client& stream : streams) {
    stream.read_all();
    EXPECT_GE(stream.tokens.size(), rig.iterations - 1 - 1) << "a token each turn";
  }
  rig.run(streams);
  expect_scores(late[0], toy_prompt(50, 9, kSmall), 0);
}

TEST_F(PromptScoresTest, AreRefusedWhereTheStreamCannotReturnThem) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  const auto submit = [&](std::unique_ptr<bridge::PromptScores> scores, std::uint32_t max_tokens, bool scores_prompt) {
    std::vector<bridge::Submission> submissions(1);
    submissions[0].request.prompt = toy_prompt(5, 1, kSmall);
    submissions[0].request.max_tokens = max_tokens;
    submissions[0].request.sampling.num_top = 2;
    submissions[0].request.scores_prompt = scores_prompt;
    submissions[0].stream = rig.hub->open([] {}, 2, std::move(scores));
    std::vector<Client> clients(1);
    clients[0].stream = submissions[0].stream;
    EXPECT_TRUE(rig.admission.admit(submissions).ok());
    rig.run(clients);
    return clients[0].finish;
  };
  EXPECT_EQ(submit(nullptr, 0, true), Finish::kFailed);
  EXPECT_EQ(submit(std::make_unique<bridge::PromptScores>(4, 2), 0, true), Finish::kFailed);
  EXPECT_EQ(submit(std::make_unique<bridge::PromptScores>(6, 2), 0, true), Finish::kFailed);
  EXPECT_EQ(submit(std::make_unique<bridge::PromptScores>(5, 1), 0, true), Finish::kFailed);
  EXPECT_EQ(submit(std::make_unique<bridge::PromptScores>(5, 2), 0, true), Finish::kScored);
  EXPECT_EQ(submit(nullptr, 0, false), Finish::kFailed) << "nothing to do";
}

TEST_F(PromptScoresTest, ABeamSearchOrALossyPolicyHasNone) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  Ask beam = scored();
  beam.beam = flow::BeamSearch{2, 1, 1.0};
  Ask lossy = scored();
  lossy.kv_policy = {flow::KvPolicy::Kind::kSinkWindow, 16, 256, 0};
  for (const Ask& ask : {beam, lossy}) {
    std::vector<Client> clients = rig.submit_many(toy_prompt(5, 1, kSmall), 3, ask);
    rig.run(clients);
    EXPECT_EQ(clients[0].finish, Finish::kFailed);
  }
}

}  // namespace
}  // namespace quire::engine::prompt_scores_test
