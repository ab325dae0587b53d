#include "app/model/engine_settings.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config_fields.h"

namespace quire::app::engine_settings_test {
namespace {

engine::EngineOptions options_with(const std::string& name, const std::string& value, model::ModelSpec model = {}) {
  Problems problems;
  const Layer layer = {{name, {"--" + name, {value}}}};
  const Config config = resolve(std::span(&layer, 1), problems);
  EXPECT_TRUE(problems.empty()) << problems.front();
  model.vocab = 100;
  MemoryPlan plan;
  plan.max_model_len = 77;
  return engine_options(config, model, plan, backend::KvType::kF32, "a mode");
}

TEST(EngineSettings, EveryPolicyAndVictimHasItsName) {
  using schedule::Policy;
  using schedule::Victim;
  const std::pair<const char*, Policy> policies[] = {{"fcfs", Policy::kFcfs},
                                                     {"priority", Policy::kPriority},
                                                     {"deadline", Policy::kDeadline},
                                                     {"fair", Policy::kFair},
                                                     {"cache", Policy::kCache}};
  for (const auto& [name, policy] : policies) {
    EXPECT_EQ(options_with("scheduling-policy", name).scheduler.policy, policy) << name;
  }
  const std::pair<const char*, Victim> victims[] = {
      {"newest", Victim::kNewest}, {"longest", Victim::kLongest}, {"lowest-priority", Victim::kLowestPriority}};
  for (const auto& [name, victim] : victims) {
    EXPECT_EQ(options_with("preemption-victim", name).scheduler.victim, victim) << name;
  }
}

TEST(EngineSettings, CarryWhatWasDecided) {
  EXPECT_EQ(options_with("max-overtakes", "0").scheduler.max_overtakes, 0u);
  EXPECT_EQ(options_with("max-num-seqs", "5").scheduler.max_num_seqs, 5u);
  EXPECT_EQ(options_with("max-num-batched-tokens", "99").scheduler.max_num_batched_tokens, 99u);
  EXPECT_EQ(options_with("stall-timeout", "3s").stall_timeout, std::chrono::seconds(3));
  EXPECT_FALSE(options_with("prefix-caching", "off").prefix_caching);
  EXPECT_TRUE(options_with("prefix-caching", "on").prefix_caching);
  const engine::EngineOptions options = options_with("port", "1");
  EXPECT_EQ(options.vocab, 100u);
  EXPECT_EQ(options.max_model_len, 77u);
  EXPECT_EQ(options.scheduler.num_swap_blocks, 0u);
}

// Of groups with layers of other sizes a saved cache fits one number of ranks only.
TEST(EngineSettings, ASavedCacheNamesTheRanksIfItsGroupsOfLayersDiffer) {
  const auto mode_of = [](std::uint32_t head_dim_of_window) {
    model::ModelSpec model;
    for (const std::uint32_t window : {0u, 64u}) {
      model::AttentionLayer& attention = model.layers.emplace_back().attention;
      attention.window = window;
      attention.num_kv_heads = 2;
      attention.head_dim = window == 0 ? 64 : head_dim_of_window;
    }
    return options_with("tensor-parallel-size", "2", std::move(model)).numeric_mode;
  };
  EXPECT_EQ(mode_of(64), "a mode");
  EXPECT_EQ(mode_of(32), "a mode blocks=2-rank");
}

// Unset, the engine's own defaults hold: the flags' must be the same numbers.
TEST(EngineSettings, DefaultsAreTheSchedulersOwn) {
  const schedule::SchedulerOptions by_flags = options_with("port", "1").scheduler;
  const schedule::SchedulerOptions own;
  EXPECT_EQ(by_flags.policy, own.policy);
  EXPECT_EQ(by_flags.victim, own.victim);
  EXPECT_EQ(by_flags.max_overtakes, own.max_overtakes);
  EXPECT_EQ(by_flags.max_num_seqs, own.max_num_seqs);
  EXPECT_EQ(by_flags.max_num_batched_tokens, own.max_num_batched_tokens);
}

TEST(EngineSettings, DebuggingTurnsOnWhatIsNamed) {
  const auto bits = [](const engine::EngineOptions& options) {
    return (options.check_blocks ? 1 : 0) | (options.poison_blocks ? 2 : 0) | (options.log_blocks ? 4 : 0);
  };
  EXPECT_EQ(bits(options_with("kv-debug", "off")), 0);
  EXPECT_EQ(bits(options_with("kv-debug", "check")), 1);
  EXPECT_EQ(bits(options_with("kv-debug", "poison")), 2);
  EXPECT_EQ(bits(options_with("kv-debug", "log")), 4);
  EXPECT_EQ(bits(options_with("kv-debug", "log,check,poison")), 7);
}

TEST(EngineSettings, LayersWithAWindowHaveBlocksOfTheirOwnUnlessDraftsAreMadeByTheTargetsLayers) {
  using Groups = std::vector<kv::CacheGroup>;
  const auto groups_of = [](const std::vector<std::uint32_t>& windows, const std::string& speculation = "") {
    model::ModelSpec model;
    for (const std::uint32_t window : windows) {
      model.layers.emplace_back().attention.window = window;
      model.layers.back().attention.num_kv_heads = model.layers.back().attention.head_dim = 1;
    }
    Config config;
    config.speculative_config = speculation;
    return cache_groups(kv_groups(config, model));
  };
  constexpr auto kWindow = kv::CacheGroup::Kind::kWindow;
  const Groups full{kv::CacheGroup{}};
  EXPECT_EQ(groups_of({0, 0}), full);
  EXPECT_EQ(groups_of({128, 128}), (Groups{{kWindow, 128}}));
  EXPECT_EQ(groups_of({128, 0}), (Groups{kv::CacheGroup{}, {kWindow, 128}}));
  EXPECT_EQ(groups_of({128, 64}), (Groups{{kWindow, 128}, {kWindow, 64}}));
  EXPECT_EQ(groups_of({128, 0}, R"({"method": "layer_skip", "exit_layer": 1})"), full);
}

}  // namespace
}  // namespace quire::app::engine_settings_test
