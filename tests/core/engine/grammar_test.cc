// Requests with a grammar, on the toy model and toy grammars: what is said is a text of it, ends with it, and is the
// same however the sequence was scheduled.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/engine_rig.h"
#include "tests/support/patient.h"
#include "tests/support/toy_grammars.h"

namespace quire::engine::grammar_test {
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

const ToyModel kSmall{.vocab = 61};
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

TEST_F(GrammarTest, TheAnswerIsATextOfItOrItsBeginning) {
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

TEST_F(GrammarTest, EmitsWhatBothItAndTheRulesAllow) {
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
  EXPECT_EQ(clients[0].finish, Finish::kNoToken) << "ab begins with no b";
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
    for (int iteration = 0; storm && iteration < 40; ++iteration) {
      rig.iterate();
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

// Grammars that leave no choice for long: a choice of long texts over a and b, with one token for each letter.
std::shared_ptr<const grammar::Grammar> one_of_two(const std::string& a, const std::string& b) {
  grammar::Rules rules;
  const grammar::RuleId root = rules.declare("root");
  const grammar::Expr texts[] = {rules.bytes(a), rules.bytes(b)};
  rules.define(root, rules.choice(texts));
  return *grammar::Grammar::compile(rules, toy_vocabulary(3), quire::testing::kPatient);
}

struct Received {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  Finish finish;
  bool operator==(const Received&) const = default;
};

TEST_F(GrammarTest, ForcedTokensAreEmittedInFewerStepsAndAreTheSame) {
  const auto text = [](std::uint32_t seed) {
    std::string out(1, seed % 2 == 0 ? 'a' : 'b');
    for (std::uint32_t i = 0; i < 90; ++i) out += quire::testing::toy_mix(seed, i) % 2 == 0 ? 'a' : 'b';
    return out;
  };
  std::uint64_t steps[2];
  const auto receive = [&](bool jump_ahead, bool storm, std::uint32_t num_blocks, std::uint32_t logit_rows,
                           TokenId spoilt) {
    ToyRunner runner(num_blocks, 4, {.vocab = 3});
    runner.poisoned_token = spoilt;
    RigOptions options{.num_blocks = num_blocks, .block_tokens = 4, .max_logits_rows = logit_rows, .vocab = 3};
    options.jump_ahead = jump_ahead;
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      Ask ask{.params = {.temperature = 1.0f, .seed = seed, .logprob = seed % 2 == 0}};
      ask.grammar = one_of_two(text(2 * seed), text(2 * seed + 1));
      if (seed == 4) ask.stop_tokens = {1};
      clients.push_back(rig.submit_many({0, 2, 0}, seed == 5 ? 50 : 100, ask)[0]);
    }
    for (int iteration = 0; storm && iteration < 60; ++iteration) {
      rig.iterate();
      rig.engine.preempt_all();
      for (Client& client : clients) client.read_all();
    }
    rig.run(clients);
    steps[jump_ahead ? 1 : 0] = rig.metrics.engine_steps.value();
    EXPECT_EQ(rig.metrics.jumped_tokens.value() > 0, jump_ahead);
    std::vector<Received> received;
    std::size_t num_tokens = 0;
    for (const Client& client : clients) {
      received.push_back({client.tokens, client.logprobs, client.finish});
      num_tokens += client.tokens.size();
    }
    EXPECT_EQ(rig.metrics.generation_tokens.value(), num_tokens);
    return received;
  };
  for (const TokenId spoilt : {-1, 1}) {
    const auto plain = receive(false, false, 256, 0, spoilt);
    EXPECT_EQ(receive(true, false, 256, 64, spoilt), plain);
    EXPECT_LT(spoilt < 0 ? 4 * steps[1] : 0, steps[0]);
    EXPECT_EQ(receive(true, false, 256, 0, spoilt), plain);
    EXPECT_EQ(receive(true, false, 30, 20, spoilt), plain);
    EXPECT_EQ(receive(true, true, 256, 64, spoilt), plain);
  }
}

TEST_F(GrammarTest, NothingIsRunAheadForWhomTheStreamHasNoRoom) {
  ToyRunner runner(256, 4, {.vocab = 3});
  RigOptions options{.num_blocks = 256, .block_tokens = 4, .max_logits_rows = 64, .vocab = 3};
  EngineRig rig(options, runner);
  Ask ask;
  ask.grammar = one_of_two("a" + std::string(150, 'b'), "b" + std::string(150, 'a'));
  std::vector<Client> clients = rig.submit_many({0, 2, 0}, 200, ask);
  for (int iteration = 0; iteration < 100; ++iteration) rig.iterate();
  EXPECT_LT(rig.metrics.generation_tokens.value(), bridge::TokenStream::kCapacity);
  EXPECT_GT(rig.metrics.generation_tokens.value(), bridge::TokenStream::kCapacity - 4);
  rig.run(clients);
  EXPECT_EQ(clients[0].tokens.size(), 151u);
  EXPECT_EQ(clients[0].finish, Finish::kComplete);
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
}  // namespace quire::engine::grammar_test
