// Who shares blocks with whom: equal prompts, choices of one prompt, prefixes pinned or salted, and what never shares.
#include <gtest/gtest.h>

#include <numeric>

#include "core/engine/engine.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::sharing_test {
namespace {

using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyModel;
using quire::testing::ToyRunner;

std::uint64_t rows_of(const ToyRunner& runner) {
  return std::accumulate(runner.rows_in_step.begin(), runner.rows_in_step.end(), std::uint64_t{0});
}

class SharingTest : public ::testing::Test {
 protected:
  // `n` choices of one prompt, and how many rows they took.
  static std::vector<Client> choices(EngineRig& rig, std::uint32_t prompt, std::uint32_t n, std::uint32_t max_tokens,
                                     std::optional<CacheNamespace> cache_namespace = CacheNamespace{0, 1})
      REQUIRES(engine_role) {
    const sample::Params params{.temperature = 1.0f, .seed = 9};
    std::vector<Client> clients = rig.submit_many(toy_prompt(prompt, prompt), max_tokens,
                                                  {.params = params, .cache_namespace = cache_namespace, .n = n});
    rig.run(clients);
    for (std::uint32_t i = 0; i < n; ++i) {
      sample::Params own = params;
      own.choice_index = i;
      EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(prompt, prompt), own, max_tokens)) << "choice " << i;
    }
    return clients;
  }

  RoleScope role_{engine_role};
};

TEST_F(SharingTest, ChoicesOfOnePromptComputeItOnceAndCopyItsPartFullBlock) {
  for (const bool caching : {true, false}) {
    ToyRunner runner(64, 16);
    EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 512, .prefix_caching = caching}, runner);
    choices(rig, 100, 4, 5);
    EXPECT_EQ(rows_of(runner), 100u + 4 * 4 + 3)
        << "the prompt once, then a row a token; of each other its last row again";
    EXPECT_EQ(runner.copies, 3u);
    EXPECT_EQ(rig.pool.num_held(), 0u);
    EXPECT_EQ(rig.pool.num_cached_blocks() > 0, caching) << "without caching nothing outlives its holders";
  }
}

TEST_F(SharingTest, ChoicesHoldThePromptsFullBlocksTogether) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 512}, runner);
  auto clients = rig.submit_many(toy_prompt(100, 1), 10, {.params = {.temperature = 1.0f}, .n = 8});
  for (int iteration = 0; iteration < 3; ++iteration) rig.iterate();
  EXPECT_EQ(rig.pool.num_held(), 6u + 8u) << "six shared, and the part full one of each";
  EXPECT_EQ(rig.pool.num_saved(), 6u * 7u);
  rig.run(clients);
}

TEST_F(SharingTest, APromptShorterThanABlockIsNotWaitedFor) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 512}, runner);
  auto clients = rig.submit_many(toy_prompt(16, 1), 4, {.params = {.temperature = 1.0f}, .n = 2});
  rig.iterate();
  EXPECT_EQ(rig.engine.scheduler().running().size(), 2u);
  rig.run(clients);
}

TEST_F(SharingTest, WhoeverNeedsNothingOfAPromptUnderWayIsNotHeldBack) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 150}, runner);
  std::vector<Client> clients;
  clients.push_back(rig.submit(toy_prompt(200, 1), 4));
  clients.push_back(rig.submit(toy_prompt(200, 1), 4));  // waits for the first
  clients.push_back(rig.submit(toy_prompt(20, 2), 4));   // does not
  rig.iterate();
  rig.iterate();
  EXPECT_EQ(rig.engine.scheduler().running().size(), 2u);
  rig.run(clients);
  EXPECT_LT(clients[2].finished_at_step, clients[1].finished_at_step);
  EXPECT_EQ(clients[1].stream->cached_tokens(), 199u);
  EXPECT_EQ(clients[1].tokens, clients[0].tokens);
}

TEST_F(SharingTest, WhenThePromptUnderWayIsCancelledTheNextOneComputesIt) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 32}, runner);
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(rig.submit(toy_prompt(200, 1), 4));
  rig.iterate();
  rig.iterate();
  clients[0].stream->cancel();
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, flow::Finish::kCancelled);
  EXPECT_EQ(clients[1].tokens, toy_answer(toy_prompt(200, 1), EngineRig::greedy(), 4));
  EXPECT_EQ(clients[2].tokens, clients[1].tokens);
  EXPECT_EQ(clients[2].stream->cached_tokens(), 199u);
}

TEST_F(SharingTest, UnderAnotherSaltNothingIsFoundNorReported) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  const auto cached = [&](std::optional<CacheNamespace> cache_namespace) REQUIRES(engine_role) {
    auto clients = rig.submit_many(toy_prompt(100, 1), 4, {.cache_namespace = cache_namespace});
    rig.run(clients);
    EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(100, 1), EngineRig::greedy(), 4));
    return clients[0].stream->cached_tokens();
  };
  EXPECT_EQ(cached(CacheNamespace{1, 1}), 0u);
  EXPECT_EQ(cached(CacheNamespace{1, 2}), 0u);
  EXPECT_EQ(cached(CacheNamespace{2, 1}), 0u);
  EXPECT_EQ(cached(std::nullopt), 0u);
  EXPECT_EQ(cached(std::nullopt), 0u) << "without a root never, not even its own";
  EXPECT_EQ(cached(CacheNamespace{1, 1}), 99u);
}

TEST_F(SharingTest, EqualPromptsUnderDifferentSaltsDoNotWaitForEachOther) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 512}, runner);
  std::vector<Client> clients;
  for (std::uint64_t salt = 0; salt < 3; ++salt) {
    clients.push_back(rig.submit_many(toy_prompt(40, 1), 4, {.cache_namespace = CacheNamespace{0, salt}})[0]);
  }
  rig.iterate();
  EXPECT_EQ(rig.engine.scheduler().running().size(), 3u);
  rig.run(clients);
  EXPECT_EQ(runner.copies, 0u);
}

TEST_F(SharingTest, TheNextTurnOfAConversationGoesOnInTheLastBlockWithoutACopy) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  std::vector<Client> first{rig.submit(toy_prompt(20, 1), 6)};
  rig.run(first);
  std::vector<TokenId> longer = toy_prompt(20, 1);
  longer.insert(longer.end(), first[0].tokens.begin(), first[0].tokens.end());
  longer.push_back(5);
  std::vector<Client> second{rig.submit(longer, 6)};
  rig.run(second);
  EXPECT_EQ(second[0].stream->cached_tokens(), 25u)
      << "all but the last token said, which was never run, and the new one";
  EXPECT_EQ(runner.copies, 0u);
  EXPECT_EQ(second[0].tokens, toy_answer(longer, EngineRig::greedy(), 6));
}

TEST_F(SharingTest, APinnedPrefixIsNeverEvicted) {
  ToyRunner runner(20, 16);
  EngineRig rig({.num_blocks = 20, .max_num_batched_tokens = 64, .max_model_len = 160}, runner);
  rig.engine.pin_prefix(toy_prompt(100, 1), CacheNamespace{0, 1});
  EXPECT_EQ(rig.pool.num_held(), 7u);
  EXPECT_EQ(rig.metrics.kv_blocks_pinned.value(), 7.0) << "counted before the first step";
  for (std::uint32_t i = 2; i < 20; ++i) {  // enough others to evict everything that can be
    std::vector<Client> other{rig.submit(toy_prompt(140, i), 10)};
    rig.run(other);
  }
  rig.iterate();  // at rest: what is held is what is pinned
  std::vector<TokenId> prompt = toy_prompt(100, 1);
  prompt.push_back(3);
  std::vector<Client> clients{rig.submit(prompt, 4)};
  rig.run(clients);
  EXPECT_EQ(clients[0].stream->cached_tokens(), 100u);
  EXPECT_EQ(clients[0].tokens, toy_answer(prompt, EngineRig::greedy(), 4));
  EXPECT_EQ(rig.pool.num_held(), 7u);
}

TEST_F(SharingTest, APinnedPrefixThatIsNotFiniteStopsTheStart) {
  ToyRunner runner(20, 16);
  runner.poisoned_token = toy_prompt(100, 1)[40];
  EngineRig rig({.num_blocks = 20, .max_model_len = 160}, runner);
  EXPECT_ANY_THROW(rig.engine.pin_prefix(toy_prompt(100, 1), CacheNamespace{0, 1}));
}

TEST_F(SharingTest, SwappedOutOrRecomputedTheTokensAreTheSame) {
  for (const std::uint32_t num_swap_blocks : {0u, 3u, 64u}) {
    ToyRunner runner(12, 16);
    EngineRig rig({.num_blocks = 12, .max_model_len = 160, .num_swap_blocks = num_swap_blocks, .poison_blocks = true},
                  runner);
    std::vector<Client> clients;
    for (std::uint32_t i = 0; i < 6; ++i) {
      clients.push_back(rig.submit_many(toy_prompt(20, i), 120, {.cache_namespace = std::nullopt})[0]);
    }
    rig.run(clients);
    for (std::uint32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(20, i), EngineRig::greedy(), 120));
    }
    EXPECT_EQ(runner.swaps_out > 0, num_swap_blocks > 0);
    EXPECT_EQ(rig.metrics.preemptions_by_swap.value() > 0, num_swap_blocks > 0);
    EXPECT_GT(runner.poisons, 0u);
  }
}

TEST_F(SharingTest, WithPoisonNothingIsLeftInABlockThatWasGivenBack) {
  ToyRunner runner(8, 16);
  EngineRig rig({.num_blocks = 8, .poison_blocks = true}, runner);
  auto clients = rig.submit_many(toy_prompt(40, 1), 20, {.cache_namespace = std::nullopt});
  rig.run(clients);
  rig.iterate();
  for (std::uint32_t block = 0; block < 8; ++block) {
    for (const ToyRunner::Slot& slot : runner.content(BlockId(block))) EXPECT_EQ(slot.position, ToyRunner::kNothing);
  }
}

TEST_F(SharingTest, ASlidingWindowModelHoldsNoMoreThanItsWindow) {
  const ToyModel model = quire::testing::toy_window(64);
  ToyRunner runner(64, 16, model);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 64, .groups = model.groups}, runner);
  std::vector<Client> clients{rig.submit(toy_prompt(200, 1), 300)};
  std::uint32_t most = 0;
  for (int iteration = 0; iteration < 280; ++iteration) {
    rig.iterate();
    clients[0].read_all();
    if (iteration > 10) most = std::max(most, rig.pool.num_held());
  }
  rig.run(clients);
  EXPECT_LE(most, 64u / 16 + 2);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(200, 1), EngineRig::greedy(), 300, model));
  std::vector<Client> again{rig.submit(toy_prompt(200, 1), 3)};
  rig.run(again);
  EXPECT_EQ(again[0].stream->cached_tokens(), 199u) << "what was given back is still found";
}

TEST_F(SharingTest, ALossySequenceIsExactHoldsItsShareAndNeverEntersTheCache) {
  using Kind = flow::KvPolicy::Kind;
  for (const flow::KvPolicy policy :
       {flow::KvPolicy{Kind::kSinkWindow, 16, 256, 0}, flow::KvPolicy{Kind::kHeavyHitters, 32, 256, 64}}) {
    for (const std::uint32_t budget : {8u, 100u, 512u}) {
      ToyRunner runner(128, 16);
      EngineRig rig({.num_blocks = 128, .max_num_batched_tokens = budget, .max_model_len = 1500}, runner);
      auto clients = rig.submit_many(toy_prompt(900, 1), 500, {.kv_policy = policy});
      rig.run(clients);
      EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(900, 1), EngineRig::greedy(), 500, {}, policy));
      EXPECT_NE(clients[0].tokens, toy_answer(toy_prompt(900, 1), EngineRig::greedy(), 500)) << "it was meant to lose";
      EXPECT_EQ(rig.pool.num_cached_blocks(), 0u);
    }
  }
}

TEST_F(SharingTest, ALossySequenceFitsWhereAWholeOneOfItsLengthWouldNot) {
  ToyRunner runner(100, 16);  // 1600 tokens
  EngineRig rig({.num_blocks = 100, .max_num_batched_tokens = 512, .max_model_len = 1600}, runner);
  const flow::KvPolicy policy{flow::KvPolicy::Kind::kSinkWindow, 16, 256, 0};
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 3; ++i)
    clients.push_back(rig.submit_many(toy_prompt(700, i), 500, {.kv_policy = policy})[0]);
  rig.run(clients);
  EXPECT_EQ(rig.metrics.preemptions.value(), 0u) << "three of them hold 3 · (16 + 512) tokens at most";
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(700, i), EngineRig::greedy(), 500, {}, policy));
  }
}

TEST_F(SharingTest, PolicyRangesAreCheckedOnceMoreByTheEngine) {
  using Kind = flow::KvPolicy::Kind;
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  const auto ends = [&](const flow::KvPolicy& policy) REQUIRES(engine_role) {
    auto clients = rig.submit_many(toy_prompt(4, 1), 2, {.kv_policy = policy});
    rig.run(clients);
    return clients[0].finish;
  };
  EXPECT_EQ(ends({Kind::kSinkWindow, 16, 256, 0}), flow::Finish::kLength);
  EXPECT_EQ(ends({Kind::kSinkWindow, 15, 256, 0}), flow::Finish::kFailed);
  EXPECT_EQ(ends({Kind::kSinkWindow, 0, 256, 0}), flow::Finish::kFailed);
  EXPECT_EQ(ends({Kind::kSinkWindow, 16, 255, 0}), flow::Finish::kFailed);
  EXPECT_EQ(ends({Kind::kSinkWindow, 16, 0, 0}), flow::Finish::kFailed);
  EXPECT_EQ(ends({Kind::kHeavyHitters, 16, 256, 17}), flow::Finish::kFailed);
}

}  // namespace
}  // namespace quire::engine::sharing_test
