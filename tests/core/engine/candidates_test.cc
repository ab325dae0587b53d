// Log probabilities on their way to the client: of the chosen token and of the likeliest ones, on the toy's table of
// them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/engine_rig.h"

namespace quire::engine::candidates_test {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::toy_logprob;
using quire::testing::toy_prompt;
using quire::testing::ToyModel;
using quire::testing::ToyPast;
using quire::testing::ToyRunner;

const ToyModel kSmall{.vocab = 61};

void expect_candidates(const Client& client, const std::vector<TokenId>& prompt, std::uint32_t num_top) {
  ToyPast past(kSmall);
  for (const TokenId token : prompt) past.push(token);
  for (std::size_t i = 0; i < client.tokens.size(); ++i) {
    EXPECT_EQ(client.logprobs[i], toy_logprob(past.hash(), client.tokens[i]));
    std::vector<sample::Candidate> expected;
    toy_top(past.hash(), num_top, kSmall, expected);
    ASSERT_EQ(client.tops[i].size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(client.tops[i][k].token, expected[k].token);
      EXPECT_EQ(client.tops[i][k].logprob, expected[k].logprob);
    }
    past.push(client.tokens[i]);
  }
}

TEST(Candidates, ReachTheClientWithTheirTokenHoweverManyItAskedFor) {
  const RoleScope role(engine_role);
  ToyRunner runner(16, 4, kSmall);
  EngineRig rig({.num_blocks = 16, .block_tokens = 4, .vocab = 61}, runner);
  const std::uint32_t asked[] = {0, 1, 5, 60, 61, 62};
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < std::size(asked); ++i) {
    const sample::Params params{.temperature = 0.0f, .logprob = true, .num_top = asked[i]};
    clients.push_back(rig.submit(toy_prompt(8, i, kSmall), 20, params));
  }
  rig.run(clients);
  EXPECT_GT(rig.metrics.preemptions.value(), 0u);
  for (std::uint32_t i = 0; i < std::size(asked); ++i) {
    EXPECT_EQ(clients[i].tokens.size(), 20u);
    expect_candidates(clients[i], toy_prompt(8, i, kSmall), asked[i]);
  }
}

TEST(Candidates, StandBesideTheirTokensInAStreamThatIsReadLate) {
  const RoleScope role(engine_role);
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
  std::vector<Client> clients{
      rig.submit(toy_prompt(8, 1, kSmall), 150, {.temperature = 0.0f, .logprob = true, .num_top = 3})};
  for (int i = 0; i < 80; ++i) rig.iterate();  // the ring is full
  rig.run(clients);
  EXPECT_EQ(clients[0].tokens.size(), 150u);
  expect_candidates(clients[0], toy_prompt(8, 1, kSmall), 3);
}

TEST(Candidates, MoreThanADeviceListsAreRefused) {
  const RoleScope role(engine_role);
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4, .vocab = 61}, runner);
  std::vector<bridge::Submission> submissions(1);
  submissions[0].request.prompt = {1, 2};
  submissions[0].request.sampling.num_top = sample::kMaxTop + 1;
  submissions[0].stream = rig.hub->open([] {});
  std::vector<Client> clients(1);
  clients[0].stream = submissions[0].stream;
  ASSERT_TRUE(rig.admission.admit(submissions).ok());
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, flow::Finish::kFailed);
}

}  // namespace
}  // namespace quire::engine::candidates_test
