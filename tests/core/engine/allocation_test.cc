// After the first steps a turn allocates nothing: operator new is counted while many sequences decode.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "tests/support/allocation_counter.h"
#include "tests/support/decoding_crowd.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_grammars.h"

namespace quire::testing::allocation_test {
namespace {

constexpr std::uint32_t kWarmUp = 2;  // the prompts, and the first token behind them

TEST(Planning, AllocatesNothingOnceSequencesDecode) {
  const RoleScope role(engine_role);
  for (const bool prefix_caching : {false, true}) {
    for (const std::uint32_t num_sequences : {1u, 64u}) {
      const CrowdOptions options{.num_sequences = num_sequences, .prefix_caching = prefix_caching};
      ScheduledCrowd crowd(options);
      for (std::uint32_t i = 0; i < kWarmUp; ++i) crowd.step();
      const long before = num_allocations.load();
      for (std::uint32_t i = kWarmUp; i < options.max_tokens; ++i) {
        crowd.step();
        ASSERT_EQ(crowd.num_planned(), num_sequences);
        ASSERT_EQ(num_allocations.load(), before) << num_sequences << " sequences, step " << i;
      }
    }
  }
}

void expect_no_allocation(const CrowdOptions& options) {
  const RoleScope role(engine_role);
  EngineCrowd crowd(options);
  for (std::uint32_t i = 0; i < kWarmUp; ++i) crowd.step();
  const long before = num_allocations.load();
  for (std::uint32_t i = kWarmUp; i + 1 < options.max_tokens; ++i) {  // the last one says the end
    crowd.step();
    crowd.read_all();
    ASSERT_EQ(crowd.num_running(), options.num_sequences);
    ASSERT_EQ(num_allocations.load(), before) << options.num_sequences << " sequences, step " << i;
  }
}

TEST(Iterations, AllocateNothingOnceSequencesDecode) {
  for (const bool prefix_caching : {false, true}) {
    for (const std::uint32_t num_sequences : {1u, 64u}) {
      for (const std::size_t depth : {1u, 2u}) {
        expect_no_allocation({.num_sequences = num_sequences, .prefix_caching = prefix_caching, .depth = depth});
      }
    }
  }
}

TEST(Iterations, AllocateNothingForSequencesWithRules) {
  const auto rules = std::make_shared<const sample::Rules>(
      sample::Rules{1.1f, 0.5f, 0.5f, {{1, 1.0f}, {4000, -5.0f}}, {}, {{7}, {1, 2}, {3, 4, 5}}, 20});
  expect_no_allocation({.num_sequences = 8, .rules = rules});
}

// Tells the same hidden states of every row.
class PoolingRunner final : public model::Runner {
 public:
  void submit(const flow::StepPlan& plan) override {
    num_pooled_ = plan.sequences.empty() ? 0 : plan.sequences[0].num_pooled;
    in_flight_ = true;
  }
  std::span<const flow::StepChoice> collect() override {
    in_flight_ = false;
    return {};
  }
  std::span<const float> pooled(std::size_t) const override { return std::span(rows_).first(num_pooled_ * 4); }
  std::uint32_t hidden_width() const override { return 4; }
  bool idle() const override { return !in_flight_; }
  bool full() const override { return in_flight_; }

 private:
  const std::vector<float> rows_ = std::vector<float>(64, 0.5f);
  std::size_t num_pooled_ = 0;
  bool in_flight_ = false;
};

TEST(Iterations, AllocateNothingWhileAPromptIsPooled) {
  const RoleScope role(engine_role);
  PoolingRunner runner;
  EngineRig rig({.max_num_batched_tokens = 16, .cut_by_time = false}, runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(600, 1), 0, {.pooling = flow::Pooling::kMean});
  for (std::uint32_t i = 0; i < kWarmUp; ++i) rig.iterate();
  const long before = num_allocations.load();
  for (std::uint32_t i = kWarmUp; i < 600 / 16; ++i) {
    rig.iterate();
    ASSERT_EQ(num_allocations.load(), before) << "turn " << i;
  }
  rig.run(clients);
  EXPECT_EQ(clients[0].stream->embedding()->sums, std::vector<double>(4, 300.0));
}

TEST(Iterations, AllocateNothingForSequencesUnderAGrammar) {
  // ab, again and again, and a rule besides, so that both masks are there.
  const auto rules = std::make_shared<const sample::Rules>(sample::Rules{.allowed = {0, 1}});
  for (const auto& beside : {std::shared_ptr<const sample::Rules>(), rules}) {
    expect_no_allocation({.num_sequences = 8, .rules = beside, .grammar = toy_grammar(2, toy_vocabulary(61))});
  }
}

constexpr std::uint32_t kLong = 100'000;  // tokens that it may say

Ask with_penalty() {
  return {.rules = std::make_shared<const sample::Rules>(sample::Rules{.repetition_penalty = 1.5f})};
}

// A hundred bytes of a request took 134 MB while it waited: eight for each of a million tokens that it might say.
TEST(Waiting, HoldsAPromptAndNothingForWhatItMaySay) {
  const RoleScope role(engine_role);
  ToyRunner runner(8000, 16);
  EngineRig rig({.num_blocks = 8000, .block_tokens = 16, .max_num_seqs = 1}, runner);
  Client first = rig.submit({1, 2, 3}, 1000);
  rig.iterate();
  Client waits = rig.submit_many({4, 5, 6}, kLong, with_penalty())[0];
  largest_allocation = 0;
  for (int i = 0; i < 50; ++i) rig.iterate();
  EXPECT_LT(largest_allocation.load(), 20'000u);
  first.stream->cancel();
  for (int i = 0; i < 5; ++i) rig.iterate();
  EXPECT_GE(largest_allocation.load(), kLong * sizeof(TokenId)) << "it runs";
  waits.stream->cancel();
  rig.iterate();
}

TEST(Waiting, OneThatThereIsNoMemoryForEndsAloneWhenItIsAdmitted) {
  const RoleScope role(engine_role);
  ToyRunner runner(8000, 16);
  EngineRig rig({.num_blocks = 8000, .block_tokens = 16, .max_num_seqs = 4}, runner);
  std::vector<Client> clients = {rig.submit({1, 2, 3}, 100), rig.submit_many({4, 5, 6}, kLong, with_penalty())[0],
                                 rig.submit({7, 8, 9}, 100)};
  largest_allowed = 100'000;
  rig.run(clients);
  largest_allowed = ~std::size_t{0};
  EXPECT_EQ(clients[0].finish, flow::Finish::kLength);
  EXPECT_EQ(clients[1].finish, flow::Finish::kFailed);
  EXPECT_TRUE(clients[1].tokens.empty());
  EXPECT_EQ(clients[2].finish, flow::Finish::kLength);
  EXPECT_EQ(clients[0].tokens, toy_answer(std::vector<TokenId>{1, 2, 3}, EngineRig::greedy(), 100));
  EXPECT_EQ(clients[2].tokens, toy_answer(std::vector<TokenId>{7, 8, 9}, EngineRig::greedy(), 100));
  rig.iterate();
  EXPECT_TRUE(rig.engine.idle());
}

}  // namespace
}  // namespace quire::testing::allocation_test
