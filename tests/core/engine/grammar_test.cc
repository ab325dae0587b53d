// Requests with a grammar, on the toy model and toy grammars: what is said is a text of it, ends with it, and is the same
// however the sequence was scheduled.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/engine_rig.h"
#include "tests/support/toy_grammars.h"

namespace quire::engine {
namespace {

using flow::Finish;
using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_grammar;
using quire::testing::toy_prompt;
using quire::testing::toy_text;
using quire::testing::toy_vocabulary;
using quire::testing::ToyModel;
using quire::testing::ToyRunner;

constexpr ToyModel kSmall{.vocab = 61};
constexpr TokenId kEnd = 60;

class GrammarTest : public ::testing::Test {
 protected:
  static std::vector<TokenId> prompt(std::uint32_t length, std::uint32_t seed) {
    std::vector<TokenId> tokens = toy_prompt(length, seed);
    for (TokenId& token : tokens) token %= 61;
    return tokens;
  }
  static std::string text_of(const Client& client) {
    std::string text;
    for (const TokenId token : client.tokens) text += toy_vocabulary(61)->piece(token);
    return text;
  }
  static RigOptions small() { return {.num_blocks = 64, .block_tokens = 4, .vocab = 61}; }
  static Ask asking(int number) { return {.grammar = toy_grammar(number, toy_vocabulary(61))}; }

  RoleScope role_{engine_role};
};

TEST_F(GrammarTest, WhatIsSaidIsATextOfItOrItsBeginning) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  int ended = 0;
  int completed = 0;
  for (int number = 1; number <= quire::testing::kNumToyGrammars; ++number) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      std::vector<Client> clients = rig.submit_many(prompt(5, seed), 12, asking(number));
      rig.run(clients);
      const std::string text = text_of(clients[0]);
      const auto is = toy_text(number, text);
      EXPECT_TRUE(is.begins) << text;
      EXPECT_EQ(clients[0].finish == Finish::kComplete, is.ends) << text;
      EXPECT_TRUE(is.complete || clients[0].finish == Finish::kLength) << text;
      EXPECT_TRUE(clients[0].tokens.size() == 12 || clients[0].finish != Finish::kLength);
      ended += clients[0].finish == Finish::kStop ? 1 : 0;
      completed += clients[0].finish == Finish::kComplete ? 1 : 0;
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(completed, 0);
  EXPECT_EQ(rig.metrics.success_stop.value(), static_cast<std::uint64_t>(ended + completed));
}

TEST_F(GrammarTest, ItsEndTokenEndsTheAnswerWithoutStopTokens) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  Ask ask = asking(1);
  ask.rules = std::make_shared<const sample::Rules>(sample::Rules{.bias = {{kEnd, 100.0f}}});
  std::vector<Client> clients = rig.submit_many(prompt(5, 1), 12, ask);
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, Finish::kStop);
  EXPECT_EQ(clients[0].tokens.back(), kEnd);
  EXPECT_TRUE(toy_text(1, text_of(clients[0])).complete);
}

TEST_F(GrammarTest, MinTokensForbidsItsEndTokensToo) {
  for (const std::uint32_t min_tokens : {0u, 3u, 6u}) {
    ToyRunner runner(64, 4, kSmall);
    EngineRig rig(small(), runner);
    Ask ask = asking(2);  // complete from the start
    ask.rules =
        std::make_shared<const sample::Rules>(sample::Rules{.bias = {{kEnd, 100.0f}}, .min_tokens = min_tokens});
    std::vector<Client> clients = rig.submit_many(prompt(5, 1), 40, ask);
    rig.run(clients);
    EXPECT_EQ(clients[0].finish, Finish::kStop);
    EXPECT_GE(clients[0].tokens.size(), min_tokens + 1u);
    EXPECT_TRUE(min_tokens > 0 || clients[0].tokens.size() == 1);
  }
}

TEST_F(GrammarTest, WhatBothItAndTheRulesAllowIsSaid) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  Ask ask = asking(1);
  ask.rules = std::make_shared<const sample::Rules>(sample::Rules{.allowed = {0}});
  std::vector<Client> clients = rig.submit_many(prompt(5, 1), 12, ask);
  rig.run(clients);
  EXPECT_EQ(text_of(clients[0]), "aaaaaaaa");
  EXPECT_EQ(clients[0].finish, Finish::kComplete);
  ask.rules = std::make_shared<const sample::Rules>(sample::Rules{.allowed = {1}});
  ask.grammar = toy_grammar(2, toy_vocabulary(61));
  clients = rig.submit_many(prompt(5, 1), 12, ask);
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, Finish::kFailed) << "ab begins with no b";
}

TEST_F(GrammarTest, ItsAnswerIsTheSameAfterPreemptionsAndBesideOthers) {
  const auto answers = [&](std::uint32_t num_blocks, std::uint32_t swap, bool storm) {
    ToyRunner runner(num_blocks, 4, kSmall);
    RigOptions options = small();
    options.num_blocks = num_blocks;
    options.num_swap_blocks = swap;
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    for (std::uint32_t i = 0; i < 6; ++i) {
      Ask ask = asking(static_cast<int>(i % 3) + 1);
      ask.params = {.temperature = 1.0f, .seed = i};
      ask.n = 2;
      for (Client& client : rig.submit_many(prompt(9, i), 30, ask)) clients.push_back(std::move(client));
    }
    for (int turn = 0; storm && turn < 40; ++turn) {
      rig.turn();
      rig.engine.preempt_all();
    }
    rig.run(clients);
    std::vector<std::vector<TokenId>> tokens;
    for (const Client& client : clients) tokens.push_back(client.tokens);
    return tokens;
  };
  const auto plain = answers(256, 0, false);
  EXPECT_EQ(answers(12, 0, false), plain);
  EXPECT_EQ(answers(12, 8, false), plain);
  EXPECT_EQ(answers(64, 0, true), plain);
}

TEST_F(GrammarTest, ABeamSearchTakesNone) {
  ToyRunner runner(64, 4, kSmall);
  EngineRig rig(small(), runner);
  Ask ask = asking(1);
  ask.beam = flow::BeamSearch{2, 2, 1.0};
  std::vector<Client> clients = rig.submit_many(prompt(5, 3), 5, ask);
  rig.run(clients);
  for (const Client& client : clients) EXPECT_EQ(client.finish, Finish::kFailed);
}

}  // namespace
}  // namespace quire::engine
