// The cache of models whose layers do not all keep all positions: what it takes, and what it still has later.
#include <gtest/gtest.h>

#include <numeric>

#include "core/kv/cache_group.h"
#include "tests/support/cache_tracker.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::window_cache_test {
namespace {

using kv::CacheGroup;
using quire::testing::CacheTracker;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyModel;
using quire::testing::ToyRunner;

constexpr CacheGroup kFull{};
constexpr CacheGroup window(std::uint32_t tokens) { return {CacheGroup::Kind::kWindow, tokens}; }
constexpr CacheGroup chunk(std::uint32_t tokens) { return {CacheGroup::Kind::kChunk, tokens}; }

class WindowCacheTest : public ::testing::Test {
 protected:
  struct World {
    explicit World(const RigOptions& options)
        : model{.groups = options.groups},
          runner(options.num_blocks, options.block_tokens, model),
          rig(options, runner),
          tracker(options.block_tokens) {
      rig.engine.report_cache(feed);
    }

    // Serves a prompt, whose answer must be that of a model without a cache. Returns the tokens that were cached.
    std::uint32_t serve(const std::vector<TokenId>& prompt, std::uint32_t max_tokens) REQUIRES(engine_role) {
      std::vector<Client> clients;
      clients.push_back(rig.submit(prompt, max_tokens));
      rig.run(clients);
      EXPECT_EQ(clients[0].tokens, toy_answer(prompt, EngineRig::greedy(), max_tokens, model));
      rig.iterate();
      rig.engine.prefix_index().check_invariants();
      tracker.drain(feed);
      EXPECT_TRUE(tracker.knows(rig.engine.prefix_index()));
      return clients[0].stream->cached_tokens();
    }

    ToyModel model;
    ToyRunner runner;
    bridge::CacheFeed feed{100000};
    EngineRig rig;
    CacheTracker tracker;
  };

  static std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  static RigOptions options(std::vector<CacheGroup> groups, std::uint32_t num_blocks, std::uint32_t max_model_len) {
    return {.num_blocks = num_blocks,
            .block_tokens = 4,
            .max_num_batched_tokens = 16,
            .max_model_len = max_model_len,
            .groups = std::move(groups)};
  }

  RoleScope role_{engine_role};
};

TEST_F(WindowCacheTest, APoolFarSmallerThanALongPromptServesAModelOfWindows) {
  World world(options({window(20), window(9)}, 40, 1000));  // of one group the prompt would take 200 blocks
  EXPECT_EQ(world.serve(toy_prompt(800, 1), 50), 0u);
  EXPECT_LE(world.rig.engine.prefix_index().num_entries(), 80u);
  EXPECT_EQ(world.rig.metrics.preemptions.value(), 0u);
}

// A match once needed the whole chain, whose first blocks were the oldest.
TEST_F(WindowCacheTest, ConversationsOfAModelOfWindowsAreFoundAgainThoughTheirFirstBlocksAreGone) {
  World world(options({window(12)}, 40, 160));
  constexpr std::uint32_t kTurns = 4;
  std::vector<std::vector<TokenId>> conversations(3);
  for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
    for (std::uint32_t i = 0; i < conversations.size(); ++i) {  // 3 x 24 blocks in the end, of 40
      const auto before = static_cast<std::uint32_t>(conversations[i].size());
      std::vector<TokenId> prompt = joined(conversations[i], toy_prompt(16, 100 * turn + i));
      const std::uint32_t num_cached = world.serve(prompt, 8);
      EXPECT_GE(num_cached + 4, before) << "turn " << turn << ": all that went before, in whole blocks";
      conversations[i] = joined(prompt, toy_answer(prompt, EngineRig::greedy(), 8, world.model));
    }
  }
}

TEST_F(WindowCacheTest, TheSamePromptRunsItsLastTokenAlone) {
  for (const auto& groups : std::vector<std::vector<CacheGroup>>{{kFull},
                                                                 {window(12)},
                                                                 {kFull, window(12)},
                                                                 {kFull, chunk(16)},
                                                                 {window(5), window(30)},
                                                                 {window(8), chunk(8)}}) {
    for (const std::uint32_t length : {15u, 16u, 17u, 18u, 33u}) {
      World world(options(groups, 96, 120));
      EXPECT_EQ(world.serve(toy_prompt(length, 1), 3), 0u);
      EXPECT_EQ(world.serve(toy_prompt(length, 1), 3), length - 1);
    }
  }
}

TEST_F(WindowCacheTest, WherePromptsPartTheThirdBeginsWhereTheFirstTwoDid) {
  World world(options({kFull, window(6)}, 96, 120));
  const std::vector<TokenId> stem = toy_prompt(40, 7);
  world.serve(joined(stem, toy_prompt(30, 1)), 2);
  world.serve(joined(stem, toy_prompt(30, 2)), 2);
  EXPECT_EQ(world.serve(joined(stem, toy_prompt(30, 3)), 2), 40u);
}

TEST_F(WindowCacheTest, AModelWithAFullGroupReportsThatGroupsBlocksAlone) {
  World world(options({kFull, window(6)}, 64, 100));
  world.serve(toy_prompt(64, 1), 1);
  EXPECT_EQ(world.tracker.size(), 16u);
  for (std::uint32_t i = 0; i < 64; ++i) {  // the window's blocks that are in no bundle go
    const BlockId block(i);
    const kv::PrefixIndex& index = world.rig.engine.prefix_index();
    const kv::EntryId entry = index.entry(block).id;
    if (entry == kv::PrefixIndex::kRoot || index.is_bundled(block)) continue;
    std::uint32_t place = 0;
    while (index.entry_at(place).id != entry) ++place;
    if (index.slots_at(place)[0] != block) world.rig.pool.evict(block);
  }
  world.rig.iterate();
  world.tracker.drain(world.feed);
  EXPECT_EQ(world.tracker.size(), 16u);
  EXPECT_TRUE(world.tracker.knows(world.rig.engine.prefix_index()));
}

TEST_F(WindowCacheTest, AModelWithoutAFullGroupReportsTheBlocksOfItsFirstGroup) {
  World world(options({window(6), window(20)}, 28, 100));
  world.serve(toy_prompt(64, 1), 1);
  const kv::PrefixIndex& index = world.rig.engine.prefix_index();
  std::size_t num_first = 0;
  std::size_t num_entries = 0;
  for (std::uint32_t place = 0; place < index.num_places(); ++place) {
    num_entries += index.entry_at(place).id != kv::PrefixIndex::kRoot;
    num_first += index.is_reported(place);
  }
  EXPECT_EQ(num_entries, 16u);
  EXPECT_LT(num_first, num_entries) << "of some entries the window's block has gone";
  EXPECT_EQ(world.tracker.size(), num_first);
  EXPECT_GE(num_first, 2u) << "those of the restore point at its end";
}

}  // namespace
}  // namespace quire::engine::window_cache_test
