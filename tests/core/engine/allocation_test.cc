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

TEST(Turns, AllocateNothingOnceSequencesDecode) {
  for (const bool prefix_caching : {false, true}) {
    for (const std::uint32_t num_sequences : {1u, 64u}) {
      for (const std::size_t depth : {1u, 2u}) {
        expect_no_allocation({.num_sequences = num_sequences, .prefix_caching = prefix_caching, .depth = depth});
      }
    }
  }
}

TEST(Turns, AllocateNothingForSequencesWithRules) {
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

TEST(Turns, AllocateNothingWhileAPromptIsPooled) {
  const RoleScope role(engine_role);
  PoolingRunner runner;
  EngineRig rig({.max_num_batched_tokens = 16, .cut_by_time = false}, runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(600, 1), 0, {.pooling = flow::Pooling::kMean});
  for (std::uint32_t i = 0; i < kWarmUp; ++i) rig.turn();
  const long before = num_allocations.load();
  for (std::uint32_t i = kWarmUp; i < 600 / 16; ++i) {
    rig.turn();
    ASSERT_EQ(num_allocations.load(), before) << "turn " << i;
  }
  rig.run(clients);
  EXPECT_EQ(clients[0].stream->embedding()->sums, std::vector<double>(4, 300.0));
}

TEST(Turns, AllocateNothingForSequencesUnderAGrammar) {
  // ab, again and again, and a rule besides, so that both masks are there.
  const auto rules = std::make_shared<const sample::Rules>(sample::Rules{.allowed = {0, 1}});
  for (const auto& beside : {std::shared_ptr<const sample::Rules>(), rules}) {
    expect_no_allocation({.num_sequences = 8, .rules = beside, .grammar = toy_grammar(2, toy_vocabulary(61))});
  }
}

}  // namespace
}  // namespace quire::testing::allocation_test
