// Rules on their way through the engine, on the toy model: what a request asks of the sampler changes its own tokens and
// nobody else's, and is a function of its tokens so far, however the sequence came to have them.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/engine_rig.h"
#include "tests/support/plain_rules.h"

namespace quire::engine::rules_test {
namespace {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyModel;
using quire::testing::ToyPast;
using quire::testing::ToyRunner;

const ToyModel kSmall{.vocab = 61};

std::shared_ptr<const sample::Rules> shared(sample::Rules rules) {
  return std::make_shared<const sample::Rules>(std::move(rules));
}

std::vector<TokenId> ruled_answer(const std::vector<TokenId>& prompt, const sample::Rules& rules, std::uint32_t count) {
  ToyPast past(kSmall);
  for (const TokenId token : prompt) past.push(token);
  std::vector<TokenId> answer;
  while (answer.size() < count) {
    const std::vector<float> row = toy_row(past.hash(), kSmall);
    const std::vector<float> adjusted = quire::testing::plainly_adjusted(row, rules, prompt, answer, {});
    answer.push_back(quire::testing::toy_choose_adjusted(
        row, adjusted, toy_choose(past.hash(), EngineRig::greedy(), past.length(), kSmall)));
    past.push(answer.back());
  }
  return answer;
}

class RulesTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

TEST_F(RulesTest, ChangeTheAnswerOfWhoHasThemAndOfNobodyElse) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
  const auto rules = shared({.frequency_penalty = 0.5f, .presence_penalty = 0.5f, .bad_words = {{3}, {4, 5}}});
  std::vector<Client> clients = rig.submit_many(toy_prompt(9, 1, kSmall), 30, {.rules = rules});
  clients.push_back(rig.submit(toy_prompt(9, 1, kSmall), 30));
  rig.run(clients);
  EXPECT_EQ(clients[0].tokens, ruled_answer(toy_prompt(9, 1, kSmall), *rules, 30));
  EXPECT_EQ(clients[1].tokens, toy_answer(toy_prompt(9, 1, kSmall), EngineRig::greedy(), 30, kSmall));
  EXPECT_NE(clients[0].tokens, clients[1].tokens);
}

TEST_F(RulesTest, PenaltiesCountTheSameTokensAfterAPreemption) {
  for (const std::uint32_t swap : {0u, 16u}) {
    ToyRunner runner(16, 4, kSmall);
    EngineRig rig({.num_blocks = 16, .block_tokens = 4, .vocab = 61, .num_swap_blocks = swap}, runner);
    const auto rules = shared({.repetition_penalty = 1.5f, .frequency_penalty = 0.25f, .bad_words = {{1, 2}}});
    std::vector<Client> clients;
    for (std::uint32_t i = 0; i < 4; ++i)
      clients.push_back(rig.submit_many(toy_prompt(8, i, kSmall), 40, {.rules = rules})[0]);
    rig.run(clients);
    EXPECT_GT(rig.metrics.preemptions.value(), 0u);
    for (std::uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(clients[i].tokens, ruled_answer(toy_prompt(8, i, kSmall), *rules, 40));
  }
}

TEST_F(RulesTest, MinTokensKeepsAStopTokenFromEndingTheAnswerTooEarly) {
  const std::vector<TokenId> plain = toy_answer(toy_prompt(5, 3, kSmall), EngineRig::greedy(), 1, kSmall);
  for (const std::uint32_t min_tokens : {0u, 1u, 2u}) {
    ToyRunner runner(64, 4, kSmall);
    EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
    std::vector<Client> clients = rig.submit_many(
        toy_prompt(5, 3, kSmall), 20, {.stop_tokens = {plain[0]}, .rules = shared({.min_tokens = min_tokens})});
    rig.run(clients);
    EXPECT_EQ(clients[0].finish == flow::Finish::kStop && clients[0].tokens.size() == 1, min_tokens == 0);
    EXPECT_EQ(clients[0].tokens[0] == plain[0], min_tokens == 0);
  }
}

TEST_F(RulesTest, WhereNothingIsAllowedThatRequestAloneFails) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
  std::vector<Client> clients =
      rig.submit_many(toy_prompt(5, 3, kSmall), 20, {.rules = shared({.allowed = {7}, .bad_words = {{7, 7}}})});
  clients.push_back(rig.submit(toy_prompt(5, 4, kSmall), 20));
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, flow::Finish::kNoToken);
  EXPECT_EQ(clients[0].tokens, std::vector<TokenId>{7});
  EXPECT_EQ(clients[1].tokens, toy_answer(toy_prompt(5, 4, kSmall), EngineRig::greedy(), 20, kSmall));
  EXPECT_EQ(rig.pool.num_held(), 0u);
}

TEST_F(RulesTest, ThatCannotBeAppliedEndTheRequestBeforeItRuns) {
  for (const sample::Rules& rules :
       {sample::Rules{.repetition_penalty = 0.0f}, sample::Rules{.allowed = {3, 2}}, sample::Rules{.allowed = {-1, 2}},
        sample::Rules{.allowed = {2, 61}}, sample::Rules{.bad_words = {{1}, {}}}}) {
    ToyRunner runner(64, 4, kSmall);
    EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
    std::vector<Client> clients = rig.submit_many(toy_prompt(5, 3, kSmall), 5, {.rules = shared(rules)});
    rig.run(clients);
    EXPECT_EQ(clients[0].finish, flow::Finish::kFailed);
    EXPECT_EQ(runner.steps, 0u);
  }
}

TEST_F(RulesTest, ABeamSearchTakesNone) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
  Ask ask{.beam = flow::BeamSearch{2, 2, 1.0}, .rules = shared({})};
  std::vector<Client> clients = rig.submit_many(toy_prompt(5, 3, kSmall), 5, ask);
  rig.run(clients);
  for (const Client& client : clients) EXPECT_EQ(client.finish, flow::Finish::kFailed);
}

}  // namespace
}  // namespace quire::engine::rules_test
