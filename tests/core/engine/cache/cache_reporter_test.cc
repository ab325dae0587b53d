// Whoever hears the cache's changes and nothing else knows what is in it, whatever became of it.
#include "core/engine/cache/cache_reporter.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "tests/support/cache_tracker.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::cache_reporter_test {
namespace {

using bridge::CacheFeed;
using quire::testing::Ask;
using quire::testing::CacheTracker;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_prompt;
using quire::testing::ToyRunner;

constexpr CacheNamespace kPlain{0, 1};

// An engine whose cache is followed.
struct World {
  explicit World(const RigOptions& options, std::size_t max_batches = 1000)
      : runner(options.num_blocks, options.block_tokens, {.groups = options.groups}),
        feed(max_batches),
        rig(options, runner),
        tracker(options.block_tokens) {}

  void begin() REQUIRES(engine_role) {
    rig.engine.report_cache(feed);
    rig.iterate();
  }
  void receive() { tracker.drain(feed); }
  bool knows() const { return tracker.knows(rig.engine.prefix_index()); }
  Client run(std::vector<TokenId> prompt, std::uint32_t max_tokens, const Ask& ask = {}) REQUIRES(engine_role) {
    std::vector<Client> clients = rig.submit_many(std::move(prompt), max_tokens, ask);
    rig.run(clients);
    rig.iterate();  // at rest
    return std::move(clients[0]);
  }
  void order(bridge::ControlOrder::Kind kind) REQUIRES(engine_role) {
    bool done = false;
    CHECK(rig.control.give({kind, "", [&done](auto) { done = true; }}).ok());
    while (!done) rig.iterate();
  }

  ToyRunner runner;
  CacheFeed feed;
  EngineRig rig;
  CacheTracker tracker;
};

class CacheReporterTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

TEST_F(CacheReporterTest, BeginsWithTheWholeCacheAndReportsNothingWithoutChanges) {
  World world({.num_blocks = 64, .max_model_len = 256});
  world.rig.engine.report_cache(world.feed);
  world.rig.engine.pin_prefix(toy_prompt(40, 3), kPlain);
  for (int iteration = 0; iteration < 5; ++iteration) world.rig.iterate();
  const CacheFeed::Batch first = world.feed.take();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->number, 0u);
  ASSERT_EQ(first->changes.size(), 3u);
  EXPECT_EQ(first->changes[0].kind, flow::CacheChange::Kind::kCleared);
  EXPECT_EQ(world.feed.take(), nullptr);
  world.tracker.receive(*first);
  EXPECT_TRUE(world.knows());
  EXPECT_EQ(world.tracker.num_cached(kPlain, toy_prompt(40, 3)), 32u);
}

TEST_F(CacheReporterTest, ABlockIsReportedBeforeTheLastTokenOfItsSequence) {
  World world({.num_blocks = 64});
  world.begin();
  std::vector<Client> clients = world.rig.submit_many(toy_prompt(64, 1), 1, {});
  while (!clients[0].done()) {
    world.rig.iterate();
    clients[0].read_all();
  }
  world.receive();
  EXPECT_EQ(world.tracker.num_cached(kPlain, toy_prompt(64, 1)), 64u);
}

TEST_F(CacheReporterTest, EqualBlocksOfSeveralSequencesAreReportedOnce) {
  World world({.num_blocks = 64, .max_num_batched_tokens = 512});
  world.begin();
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) {
    for (Client& one : world.rig.submit_many(toy_prompt(33, 7), 40, {.n = 2})) clients.push_back(std::move(one));
  }
  world.rig.run(clients);
  world.rig.iterate();
  world.receive();  // dies of a block that comes twice
  EXPECT_TRUE(world.knows());
  EXPECT_EQ(world.tracker.size(), 4u) << "one greedy answer to one prompt: 72 tokens with K and V";
}

// Prompts from a few stems, so that they share beginnings; long enough that they push each other out.
TEST_F(CacheReporterTest, TheChangesAddUpToTheCacheHoweverItWasFilledAndEmptied) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    RigOptions options{.num_blocks = 24 + below(40), .block_tokens = 4, .max_num_batched_tokens = 16};
    options.max_model_len = 80;
    if (seed % 4 == 1) options.num_swap_blocks = 16;
    if (seed % 4 == 2) options.groups = {{kv::CacheGroup::Kind::kWindow, 12}};
    if (seed % 4 == 3) options.partial_blocks = false;
    World world(options, seed % 5 == 0 ? 1 + below(3) : 1000);
    if (seed % 3 == 0) world.rig.engine.pin_prefix(toy_prompt(9, 0), kPlain);
    world.begin();
    for (int round = 0; round < 30; ++round) {
      std::vector<Client> clients;
      for (std::uint32_t i = 0; i < 1 + below(6); ++i) {
        std::vector<TokenId> prompt = toy_prompt(5 + below(30), below(4));
        const std::vector<TokenId> more = toy_prompt(1 + below(20), 100 + below(8));
        prompt.insert(prompt.end(), more.begin(), more.end());
        Ask ask{.cache_namespace = CacheNamespace{0, 1 + below(2)}, .n = 1 + below(2)};
        if (below(8) == 0) ask = {.beam = flow::BeamSearch{2, 1, 1.0}};
        if (below(10) == 0) ask.cache_namespace.reset();
        for (Client& one : world.rig.submit_many(prompt, 1 + below(16), ask)) clients.push_back(std::move(one));
      }
      for (std::uint32_t iteration = below(12); iteration > 0; --iteration) world.rig.iterate();
      if (below(3) == 0) world.rig.engine.preempt_all();
      if (below(6) == 0) clients[0].stream->cancel();
      if (below(4) == 0) world.order(bridge::ControlOrder::Kind::kClearCache);
      if (options.num_blocks % 2 == 0) world.receive();
      for (Client& one : clients) {
        while (!one.done()) {
          world.rig.iterate();
          for (Client& each : clients) each.read_all();
        }
      }
      world.rig.iterate();
      world.receive();
      world.rig.iterate();  // where something was lost, it is told now that there is room
      world.receive();
      ASSERT_TRUE(world.knows()) << "round " << round;
    }
    EXPECT_EQ(world.tracker.num_lost(), world.rig.metrics.kv_event_batches_lost.value());
  }
}

TEST_F(CacheReporterTest, WithoutPartialBlocksTheFollowerForetellsEveryCachedToken) {
  World world({.num_blocks = 40, .block_tokens = 4, .max_num_batched_tokens = 16, .partial_blocks = false});
  world.begin();
  std::mt19937 random(5);
  std::uint64_t total = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<TokenId> prompt = toy_prompt(1 + random() % 30, random() % 3);
    const std::vector<TokenId> more = toy_prompt(1 + random() % 30, 50 + random() % 6);
    prompt.insert(prompt.end(), more.begin(), more.end());
    world.receive();
    // The last token always runs, and so does what is in a block with it.
    const std::uint32_t foretold = world.tracker.num_cached(kPlain, std::span(prompt).first(prompt.size() - 1));
    const Client client = world.run(prompt, 1 + random() % 10);
    ASSERT_EQ(client.stream->cached_tokens(), foretold) << "request " << i;
    total += foretold;
  }
  EXPECT_GT(total, 1000u);
  EXPECT_GT(world.rig.pool.num_evicted(), 100u);
}

TEST_F(CacheReporterTest, ALostBatchIsMadeGoodByTheNextOneAndCounted) {
  for (const std::size_t max_batches : {1u, 2u, 3u}) {
    World world({.num_blocks = 64}, max_batches);
    world.begin();  // one waits
    for (std::uint32_t i = 1; i <= 3; ++i) {
      world.run(toy_prompt(32, i), 1);
      EXPECT_EQ(world.rig.metrics.kv_event_batches_lost.value(), i < max_batches ? 0u : 1u)
          << max_batches << " may wait, and this is number " << i;
    }
    world.receive();
    EXPECT_EQ(world.knows(), false);
    world.run(toy_prompt(32, 9), 1);
    world.receive();
    EXPECT_TRUE(world.knows());
    EXPECT_EQ(world.tracker.num_lost(), 1u);
    EXPECT_EQ(world.tracker.num_cleared(), 2u);
  }
}

TEST_F(CacheReporterTest, AClearedCacheIsReportedAsClearedWithTheBlocksStillHeld) {
  World world({.num_blocks = 64, .max_model_len = 256});
  world.rig.engine.pin_prefix(toy_prompt(32, 3), kPlain);
  world.begin();
  world.run(toy_prompt(64, 1), 1);
  world.receive();
  EXPECT_EQ(world.tracker.size(), 6u);
  world.order(bridge::ControlOrder::Kind::kClearCache);
  world.rig.iterate();
  world.receive();
  EXPECT_EQ(world.tracker.size(), 2u);
  EXPECT_EQ(world.tracker.num_cleared(), 2u);
  EXPECT_TRUE(world.knows());
  EXPECT_EQ(world.run(toy_prompt(64, 1), 1).stream->cached_tokens(), 0u);
}

TEST_F(CacheReporterTest, AnOrderIsAnsweredAfterItsChangesAreReported) {
  World world({.num_blocks = 64, .max_model_len = 256});
  world.begin();
  world.run(toy_prompt(64, 1), 1);
  world.receive();
  EXPECT_EQ(world.tracker.size(), 4u);
  std::optional<std::size_t> left;
  const auto done = [&](auto) {
    world.receive();
    left = world.tracker.size();
  };
  CHECK(world.rig.control.give({bridge::ControlOrder::Kind::kClearCache, "", done}).ok());
  while (!left) world.rig.iterate();
  EXPECT_EQ(left, 0u);
}

}  // namespace
}  // namespace quire::engine::cache_reporter_test
