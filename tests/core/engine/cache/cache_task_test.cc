// Saving the prefix cache and loading it into another engine.
#include "core/engine/cache/cache_task.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/engine/cache/cache_file.h"
#include "core/model/source/digest.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::cache_task_test {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyRunner;

struct World {
  explicit World(const RigOptions& options = {})
      : runner(options.num_blocks, options.block_tokens), rig(options, runner) {}

  Result<bridge::CacheReport> obey(bridge::ControlOrder::Kind kind, const std::string& path) REQUIRES(engine_role) {
    std::optional<Result<bridge::CacheReport>> report;
    CHECK(rig.control.give({kind, path, [&report](Result<bridge::CacheReport> ended) { report = std::move(ended); }})
              .ok());
    for (int iteration = 0; iteration < 1000 && !report; ++iteration) rig.iterate();
    CHECK(report.has_value());
    return *report;
  }
  Result<bridge::CacheReport> save(const std::string& path) REQUIRES(engine_role) {
    return obey(bridge::ControlOrder::Kind::kSaveCache, path);
  }
  Result<bridge::CacheReport> load(const std::string& path) REQUIRES(engine_role) {
    return obey(bridge::ControlOrder::Kind::kLoadCache, path);
  }
  std::uint32_t run(std::uint32_t length, std::uint32_t seed, CacheNamespace cache_namespace = {0, 1})
      REQUIRES(engine_role) {
    auto clients = rig.submit_many(toy_prompt(length, seed), 4, {.cache_namespace = cache_namespace});
    rig.run(clients);
    EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(length, seed), EngineRig::greedy(), 4));
    return clients[0].stream->cached_tokens();
  }

  ToyRunner runner;
  EngineRig rig;
};

class CacheTaskTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("quire-cache-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  RoleScope role_{engine_role};
  std::filesystem::path directory_;
};

TEST_F(CacheTaskTest, WhatOneEngineSavedAnotherFindsInTheSameNamespaces) {
  World first;
  EXPECT_EQ(first.run(100, 1), 0u);
  EXPECT_EQ(first.run(50, 2, {7, 7}), 0u);
  const auto saved = first.save(path("cache"));
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  EXPECT_EQ(saved->num_blocks, 7u + 4u);
  EXPECT_EQ(saved->num_bytes, std::filesystem::file_size(path("cache")));

  World second;
  const auto loaded = second.load(path("cache"));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->num_blocks, saved->num_blocks);
  EXPECT_EQ(second.rig.pool.num_held(), 0u);
  EXPECT_EQ(second.run(100, 1), 99u);
  EXPECT_EQ(second.run(50, 2), 0u) << "another root";
  EXPECT_EQ(second.run(50, 2, {7, 7}), 49u);
}

TEST_F(CacheTaskTest, LoadingTwiceAddsNothing) {
  World world;
  world.run(100, 1);
  ASSERT_TRUE(world.save(path("cache")).ok());
  const auto again = world.load(path("cache"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->num_blocks, 0u);
  EXPECT_EQ(again->num_skipped, 7u);
  EXPECT_EQ(world.rig.pool.num_cached_blocks(), 7u);
}

TEST_F(CacheTaskTest, IntoASmallerPoolComesWhatFitsParentsFirstAndNothingIsEvicted) {
  World first;
  first.run(300, 1);
  ASSERT_TRUE(first.save(path("cache")).ok());
  World second({.num_blocks = 10, .max_model_len = 160});
  second.run(20, 5);
  const std::uint32_t kept = second.rig.pool.num_cached_blocks();
  const auto loaded = second.load(path("cache"));
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->num_blocks, 10u - kept);
  EXPECT_EQ(second.run(20, 5), 19u);
  auto clients = second.rig.submit_many(toy_prompt(300, 1), 1, {});
  clients.clear();
  std::vector<TokenId> begin = toy_prompt(300, 1);
  begin.resize(100);
  auto begun = second.rig.submit_many(begin, 4, {});
  second.rig.run(begun);
  EXPECT_EQ(begun[0].stream->cached_tokens(), 99u);
}

TEST_F(CacheTaskTest, WhileALongLoadIsUnderWayARequestOfMaximumLengthStillHasRoom) {
  World first({.num_blocks = 32});
  for (std::uint32_t i = 0; i < 5; ++i) first.run(90, i);
  ASSERT_TRUE(first.save(path("cache")).ok());
  World second({.num_blocks = 32});
  second.runner.clock = &second.rig.clock;
  second.runner.block_time = std::chrono::milliseconds(5);  // four blocks a turn
  bool done = false;
  ASSERT_TRUE(
      second.rig.control.give({bridge::ControlOrder::Kind::kLoadCache, path("cache"), [&done](auto) { done = true; }})
          .ok());
  for (int iteration = 0; iteration < 7; ++iteration) second.rig.iterate();
  ASSERT_FALSE(done);
  std::vector<Client> clients{second.rig.submit(toy_prompt(400, 77), 112)};
  second.rig.run(clients);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(400, 77), EngineRig::greedy(), 112));
  while (!done) second.rig.iterate();
  EXPECT_EQ(second.rig.pool.num_held(), 0u);
  for (std::uint32_t i = 0; i < 5; ++i) second.run(90, i);  // whatever of it is left is right
}

TEST_F(CacheTaskTest, ASavedCacheIsItsOwnersAloneAndLeavesNoPartBehind) {
  World world;
  world.run(70, 1);
  ASSERT_TRUE(world.save(path("cache")).ok());
  const auto mode = std::filesystem::status(path("cache")).permissions();
  EXPECT_EQ(mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
            std::filesystem::perms::none);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
  std::filesystem::create_symlink(path("cache"), path("link"));
  EXPECT_FALSE(world.load(path("link")).ok());
}

TEST_F(CacheTaskTest, AnOrderUnderWayWhenTheEngineStopsIsAnswered) {
  World world;
  world.run(70, 1);
  world.runner.clock = &world.rig.clock;
  world.runner.block_time = std::chrono::milliseconds(30);
  std::optional<Result<bridge::CacheReport>> report;
  ASSERT_TRUE(world.rig.control
                  .give({bridge::ControlOrder::Kind::kSaveCache, path("cache"),
                         [&report](Result<bridge::CacheReport> ended) { report = std::move(ended); }})
                  .ok());
  world.rig.iterate();
  ASSERT_FALSE(report);
  world.rig.engine.abandon();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->error().code, Code::kUnavailable);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(CacheTaskTest, StreamsGoOnWhileTheCacheIsSaved) {
  World world;
  world.run(100, 1);
  auto clients = world.rig.submit_many(toy_prompt(30, 3), 40, {});
  bool done = false;
  ASSERT_TRUE(
      world.rig.control.give({bridge::ControlOrder::Kind::kSaveCache, path("cache"), [&done](auto) { done = true; }})
          .ok());
  world.rig.run(clients);
  EXPECT_TRUE(done);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(30, 3), EngineRig::greedy(), 40));
}

TEST_F(CacheTaskTest, AFileThatIsDamagedAnywhereIsRefusedAndWhatWasReadOfItIsStillRight) {
  World first;
  first.run(70, 1);
  ASSERT_TRUE(first.save(path("cache")).ok());
  std::ifstream in(path("cache"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(1);
  for (int i = 0; i < 120; ++i) {
    std::string bad = bytes;
    if (i % 3 == 0) {
      bad.resize(random() % bytes.size());
    } else if (i % 3 == 1) {
      bad[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    } else {
      bad += 'x';
    }
    std::ofstream(path("bad"), std::ios::binary) << bad;
    World second;
    const auto loaded = second.load(path("bad"));
    ASSERT_FALSE(loaded.ok()) << "damage " << i;
    EXPECT_EQ(loaded.error().code, Code::kInvalidArgument);
    second.run(70, 1);  // checks the tokens
    EXPECT_EQ(second.rig.pool.num_held(), 0u);
  }
}

TEST_F(CacheTaskTest, AnotherBlockSizeIsRefusedByName) {
  World first;
  first.run(70, 1);
  ASSERT_TRUE(first.save(path("cache")).ok());
  World second({.num_blocks = 64, .block_tokens = 32});
  const auto loaded = second.load(path("cache"));
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("--block-size"), std::string::npos) << loaded.error().message;
}

TEST_F(CacheTaskTest, AnotherNumericModeIsRefused) {
  World first;
  first.run(70, 1);
  ASSERT_TRUE(first.save(path("cache")).ok());
  const std::string other = "another model";
  bridge::ControlOrder order{bridge::ControlOrder::Kind::kLoadCache, path("cache"), {}};
  kv::BlockPool pool(64, 16);
  kv::PrefixIndex index(pool, {});
  auto task = make_cache_task(order, {first.runner, pool, index, other, 997});
  ASSERT_TRUE(task->done());
  EXPECT_EQ(task->report().error().code, Code::kInvalidArgument);
  EXPECT_NE(task->report().error().message.find("numeric mode"), std::string::npos);
}

TEST_F(CacheTaskTest, AFileThatIsNotThereAndAPlaceThatCannotBeWrittenAreErrors) {
  World world;
  EXPECT_EQ(world.load(path("none")).error().code, Code::kNotFound);
  EXPECT_EQ(world.save("/nowhere/at/all").error().code, Code::kInternal);
  world.run(20, 1);  // and life goes on
}

TEST_F(CacheTaskTest, AnEmptyCacheSavesAndLoads) {
  World world;
  ASSERT_TRUE(world.save(path("cache")).ok());
  const auto loaded = world.load(path("cache"));
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->num_blocks, 0u);
}

// ---- files that somebody else wrote, with hashes that are right

class WrittenFile {
 public:
  // Begins with the header of an empty cache's file.
  explicit WrittenFile(const std::string& empty) {
    std::ifstream in(empty, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    bytes_.resize(bytes_.size() - sizeof(EntryHead) - sizeof(std::uint64_t));  // without the end
  }
  void add(const EntryHead& head, const std::vector<TokenId>& tokens, std::size_t block_bytes) {
    const std::vector<std::byte> block(block_bytes);
    put(bytes_of(head));
    put(std::as_bytes(std::span(tokens)));
    for (int i = 0; i < std::popcount(head.slots); ++i) put(block);
    put_hash();
    ++num_entries_;
  }
  void write(const std::string& path) {
    put(bytes_of(EntryHead{.parent = num_entries_}));
    put_hash();
    std::ofstream(path, std::ios::binary) << bytes_;
  }

 private:
  void put(std::span<const std::byte> part) {
    hash_ = model::hash_bytes(part, hash_);
    bytes_.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  void put_hash() {
    bytes_.append(reinterpret_cast<const char*>(&hash_), sizeof(hash_));
    hash_ = 0;
  }

  std::string bytes_;
  std::uint64_t hash_ = 0;
  std::uint64_t num_entries_ = 0;
};

constexpr std::uint32_t kBlockTokens = RigOptions{}.block_tokens;
const std::vector<TokenId> kFull(kBlockTokens, 7);

TEST_F(CacheTaskTest, AncestorsInACircleAndIdsTwiceAreRefused) {
  World world;
  ASSERT_TRUE(world.save(path("empty")).ok());
  const auto refused = [&](const std::vector<EntryHead>& heads) REQUIRES(engine_role) {
    WrittenFile file(path("empty"));
    for (EntryHead head : heads) {
      head.num_tokens = kBlockTokens;
      file.add(head, kFull, world.runner.block_bytes());
    }
    file.write(path("bad"));
    const auto loaded = world.load(path("bad"));
    return !loaded.ok() && loaded.error().message.find("an entry is damaged") != std::string::npos;
  };
  EXPECT_TRUE(refused({{.id = 1, .parent = 1}, {.id = 2, .parent = 1, .slots = 1}}));
  EXPECT_TRUE(refused({{.id = 1, .parent = 2}, {.id = 2, .parent = 1}, {.id = 3, .parent = 2, .slots = 1}}));
  EXPECT_TRUE(refused({{.id = 4}, {.id = 4, .slots = 1}}));
  EXPECT_TRUE(refused({{.id = 4}, {.id = 3, .slots = 1}}));
  EXPECT_FALSE(refused({{.id = 3}, {.id = 4, .parent = 3, .slots = 1}}));
}

TEST_F(CacheTaskTest, AFileOfRandomEntriesEndsAndLeavesTheIndexInOrder) {
  World empty;
  ASSERT_TRUE(empty.save(path("empty")).ok());
  std::mt19937 random(3);
  std::uint64_t num_blocks = 0;
  for (int i = 0; i < 400; ++i) {
    WrittenFile file(path("empty"));
    for (std::uint64_t id = 1; id <= 1 + random() % 40; ++id) {
      EntryHead head{
          .id = id, .parent = random() % id, .namespace_high = 9, .namespace_low = random() % 8 == 0 ? 1u : 2u};
      head.num_tokens = random() % 4 == 0 ? 1 + random() % kBlockTokens : kBlockTokens;
      head.slots = head.num_tokens == kBlockTokens ? random() % 2 : 1;
      std::vector<TokenId> tokens(head.num_tokens, 7);
      tokens.back() = static_cast<TokenId>(random() % 3);
      file.add(head, tokens, empty.runner.block_bytes());
    }
    file.write(path("random"));
    World world;
    const auto loaded = world.load(path("random"));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    num_blocks += loaded->num_blocks;
    world.rig.engine.prefix_index().check_invariants();
    world.run(70, 1);
    EXPECT_EQ(world.rig.pool.num_held(), 0u);
  }
  EXPECT_GT(num_blocks, 400u) << "most files have something to load";
}

TEST_F(CacheTaskTest, OfEntriesWithoutBlocksNoMoreAreKeptThanTheIndexHas) {
  World world;
  ASSERT_TRUE(world.save(path("empty")).ok());
  const std::uint32_t most = world.rig.engine.prefix_index().num_places();
  for (const std::uint32_t count : {most - 1, most, most + 1}) {
    WrittenFile file(path("empty"));
    for (std::uint32_t id = 1; id <= count; ++id) {
      file.add({.id = id, .namespace_low = id, .num_tokens = kBlockTokens}, kFull, 0);
    }
    file.write(path("many"));
    const auto loaded = world.load(path("many"));
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->num_skipped, count > most ? 1u : 0u);
  }
}

}  // namespace
}  // namespace quire::engine::cache_task_test
