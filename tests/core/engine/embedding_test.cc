// Prompts that are pooled, on the toy model: the sums of hidden states are those of a lone prompt, to the bit, whatever
// its chunks, its company, the cache or preemptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "core/bridge/prompt_embedding.h"
#include "tests/support/engine_rig.h"

namespace quire::engine::embedding_test {
namespace {

using flow::Finish;
using flow::Pooling;
using quire::testing::Ask;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::kToyHidden;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_embedding;
using quire::testing::toy_prompt;
using quire::testing::ToyModel;
using quire::testing::ToyRunner;

constexpr Pooling kPoolings[] = {Pooling::kLast, Pooling::kMean};

void expect_embedding(const Client& client, const std::vector<TokenId>& prompt, Pooling pooling,
                      const ToyModel& model = {}) {
  EXPECT_EQ(client.finish, Finish::kScored);
  EXPECT_TRUE(client.tokens.empty());
  const bridge::PromptEmbedding& embedding = *client.stream->embedding();
  EXPECT_EQ(embedding.num_rows, pooling == Pooling::kMean ? prompt.size() : 1u);
  EXPECT_EQ(embedding.sums, toy_embedding(prompt, pooling, model));
}

class EmbeddingTest : public ::testing::Test {
 protected:
  static Ask pooled(Pooling pooling) { return {.pooling = pooling}; }
  static RigOptions small() { return {.num_blocks = 64, .block_tokens = 4}; }

  RoleScope role_{engine_role};
};

TEST_F(EmbeddingTest, IsThatOfItsTokensForEverySizeOfChunk) {
  for (const Pooling pooling : kPoolings) {
    for (const std::uint32_t length : {1u, 2u, 3u, 40u, 256u}) {  // the last: as long as the model takes
      const std::vector<TokenId> prompt = toy_prompt(length, length);
      for (std::uint32_t chunk = 1; chunk <= 41; ++chunk) {
        RigOptions options = small();
        options.max_num_seqs = 1;
        options.max_num_batched_tokens = chunk;
        ToyRunner runner(64, 4);
        EngineRig rig(options, runner);
        std::vector<Client> clients = rig.submit_many(prompt, 0, pooled(pooling));
        rig.run(clients);
        expect_embedding(clients[0], prompt, pooling);
        EXPECT_EQ(std::accumulate(runner.rows_in_step.begin(), runner.rows_in_step.end(), 0u), length);
        EXPECT_EQ(rig.pool.num_held(), 0u);
      }
    }
  }
}

TEST_F(EmbeddingTest, NeedsNoRowOfLogits) {
  for (const Pooling pooling : kPoolings) {
    RigOptions options = small();
    options.max_num_seqs = 1;
    options.max_num_batched_tokens = 64;
    ToyRunner runner(64, 4);
    EngineRig rig(options, runner);
    runner.max_logits_rows = 0;
    std::vector<Client> clients = rig.submit_many(toy_prompt(64, 1), 0, pooled(pooling));
    rig.run(clients);
    expect_embedding(clients[0], toy_prompt(64, 1), pooling);
    EXPECT_EQ(runner.steps, 1u) << "all its rows in one step";
  }
}

TEST_F(EmbeddingTest, OfTheLastRowBeginsWithWhatIsCachedAndOfAllRowsDoesNot) {
  for (const Pooling pooling : kPoolings) {
    ToyRunner runner(64, 4);
    EngineRig rig(small(), runner);
    const std::vector<TokenId> prompt = toy_prompt(40, 1);
    for (int i = 0; i < 2; ++i) {
      std::vector<Client> clients = rig.submit_many(prompt, 0, pooled(pooling));
      rig.run(clients);
      EXPECT_EQ(clients[0].stream->cached_tokens(), i == 1 && pooling == Pooling::kLast ? 39u : 0u);
      expect_embedding(clients[0], prompt, pooling);
    }
    std::vector<Client> after = rig.submit_many(prompt, 3, {});
    rig.run(after);
    EXPECT_EQ(after[0].stream->cached_tokens(), 39u) << "what was pooled is there for others";
    EXPECT_EQ(after[0].tokens, toy_answer(prompt, EngineRig::greedy(), 3));
  }
}

TEST_F(EmbeddingTest, IsTheSameInACrowdThatDecodesAndEmbeds) {
  for (const std::uint32_t window : {0u, 9u}) {
    for (const bool prefix_caching : {false, true}) {
      RigOptions options = small();
      const ToyModel model = window == 0 ? ToyModel{} : quire::testing::toy_window(window);
      options.groups = model.groups;
      options.prefix_caching = prefix_caching;
      options.max_num_batched_tokens = 17;
      ToyRunner runner(64, 4, model);
      EngineRig rig(options, runner);
      std::vector<Client> clients;
      const auto prompt_of = [](std::uint32_t i) { return toy_prompt(5 + 7 * i, i % 4); };  // four that begin alike
      for (std::uint32_t i = 0; i < 18; ++i) {
        if (i % 3 == 0) {
          clients.push_back(rig.submit(prompt_of(i), 12));
        } else {
          clients.push_back(rig.submit_many(prompt_of(i), 0, pooled(kPoolings[i % 3 - 1]))[0]);
        }
        rig.iterate();
      }
      rig.run(clients);
      for (std::uint32_t i = 0; i < 18; ++i) {
        if (i % 3 == 0) {
          EXPECT_EQ(clients[i].tokens, toy_answer(prompt_of(i), EngineRig::greedy(), 12, model));
        } else {
          expect_embedding(clients[i], prompt_of(i), kPoolings[i % 3 - 1], model);
        }
      }
      EXPECT_EQ(rig.pool.num_held(), 0u);
    }
  }
}

// Old streams grow until newer prompts must go, half way through.
TEST_F(EmbeddingTest, IsTheSameAfterAPreemptionInTheMiddle) {
  for (const Pooling pooling : kPoolings) {
    for (const std::uint32_t swap : {0u, 32u}) {
      for (const bool prefix_caching : {false, true}) {
        RigOptions options = small();
        options.num_blocks = 24;
        options.num_swap_blocks = swap;
        options.prefix_caching = prefix_caching;
        options.max_num_batched_tokens = 8;
        ToyRunner runner(24, 4);
        EngineRig rig(options, runner);
        std::vector<Client> clients;
        for (std::uint32_t i = 0; i < 4; ++i) clients.push_back(rig.submit(toy_prompt(4, i), 20));
        for (int iteration = 0; iteration < 3; ++iteration) rig.iterate();
        const std::vector<TokenId> prompt = toy_prompt(60, 9);
        clients.push_back(rig.submit_many(prompt, 0, pooled(pooling))[0]);
        rig.run(clients);
        EXPECT_GT(rig.engine.scheduler().num_preemptions(), 0u);
        EXPECT_GT(clients[4].stream->timeline()->preemptions().num(), 0u) << "it was to be the victim";
        EXPECT_EQ(runner.swaps_in > 0, swap > 0);
        expect_embedding(clients[4], prompt, pooling);
        for (std::uint32_t i = 0; i < 4; ++i) {
          EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(4, i), EngineRig::greedy(), 20));
        }
      }
    }
  }
}

TEST_F(EmbeddingTest, ARowThatIsNotFiniteFailsThatRequestAloneAndIsNotCached) {
  for (const Pooling pooling : kPoolings) {
    for (const std::size_t bad : {0u, 5u, 38u, 39u}) {
      ToyRunner runner(64, 4);
      runner.poisoned_token = 996;
      RigOptions options = small();
      options.max_num_batched_tokens = 11;
      EngineRig rig(options, runner);
      std::vector<TokenId> prompt = toy_prompt(40, 1);
      std::ranges::replace(prompt, 996, 995);
      const std::vector<TokenId> good = prompt;
      prompt[bad] = 996;
      std::vector<Client> clients = rig.submit_many(prompt, 0, pooled(pooling));
      clients.push_back(rig.submit_many(good, 0, pooled(pooling))[0]);
      rig.run(clients);
      EXPECT_EQ(clients[0].finish, Finish::kFailed);
      expect_embedding(clients[1], good, pooling);
      EXPECT_EQ(rig.metrics.corrupted_requests.value(), 1u);
      std::vector<Client> again = rig.submit_many(prompt, 0, pooled(pooling));
      rig.run(again);
      EXPECT_EQ(again[0].finish, Finish::kFailed);
      EXPECT_LE(again[0].stream->cached_tokens(), bad) << "of the good one";
      EXPECT_EQ(rig.pool.num_held(), 0u);
    }
  }
}

TEST_F(EmbeddingTest, OthersWaitForAPromptThatIsPooledAndBeginBehindIt) {
  RigOptions options = small();
  options.max_num_batched_tokens = 16;
  ToyRunner runner(64, 4);
  EngineRig rig(options, runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(100, 1), 0, pooled(Pooling::kMean));
  clients.push_back(rig.submit(toy_prompt(100, 1), 3));
  rig.run(clients);
  EXPECT_EQ(clients[1].stream->cached_tokens(), 99u);
  expect_embedding(clients[0], toy_prompt(100, 1), Pooling::kMean);
}

TEST_F(EmbeddingTest, IsCountedAsAPromptWithoutAnAnswer) {
  ToyRunner runner(64, 4);
  EngineRig rig(small(), runner);
  std::vector<Client> clients = rig.submit_many(toy_prompt(40, 1), 0, pooled(Pooling::kMean));
  rig.run(clients);
  EXPECT_EQ(rig.metrics.prompt_tokens.value(), 40u);
  EXPECT_EQ(rig.metrics.generation_tokens.value(), 0u);
  EXPECT_EQ(rig.metrics.prefix_cache_queries.value(), 0u) << "it asked the cache for nothing";
  EXPECT_EQ(rig.metrics.success_length.value(), 1u);
}

TEST_F(EmbeddingTest, IsRefusedWhereItCannotBeReturnedOrHasNoMeaning) {
  ToyRunner runner(64, 4);
  EngineRig rig(small(), runner);
  const auto finish_of = [&](std::size_t width, auto change) {
    std::vector<bridge::Submission> submissions(1);
    submissions[0].request.prompt = toy_prompt(5, 1);
    submissions[0].request.max_tokens = 0;
    submissions[0].request.pooling = Pooling::kMean;
    change(submissions[0].request);
    submissions[0].stream = rig.hub->open([] {}, 0, std::make_unique<bridge::PromptScores>(5, 0),
                                          width == 0 ? nullptr : std::make_unique<bridge::PromptEmbedding>(width));
    std::vector<Client> clients(1);
    clients[0].stream = submissions[0].stream;
    EXPECT_TRUE(rig.admission.admit(submissions).ok());
    rig.run(clients);
    return clients[0].finish;
  };
  const auto as_it_is = [](flow::Request&) {};
  EXPECT_EQ(finish_of(kToyHidden, as_it_is), Finish::kScored);
  for (const std::size_t width : {std::size_t{0}, std::size_t{kToyHidden - 1}, std::size_t{kToyHidden + 1}}) {
    EXPECT_EQ(finish_of(width, as_it_is), Finish::kFailed) << width;
  }
  EXPECT_EQ(finish_of(kToyHidden, [](flow::Request& request) { request.max_tokens = 1; }), Finish::kFailed);
  EXPECT_EQ(finish_of(kToyHidden, [](flow::Request& request) { request.scores_prompt = true; }), Finish::kFailed);
  EXPECT_EQ(finish_of(kToyHidden, [](flow::Request& request) { request.beam = flow::BeamSearch{}; }), Finish::kFailed);
  EXPECT_EQ(
      finish_of(kToyHidden, [](flow::Request& request) { request.rules = std::make_shared<const sample::Rules>(); }),
      Finish::kFailed);
  EXPECT_EQ(finish_of(kToyHidden,
                      [](flow::Request& request) {
                        request.kv_policy = {flow::KvPolicy::Kind::kSinkWindow, 16, 256, 0};
                      }),
            Finish::kFailed);
  EXPECT_EQ(rig.pool.num_held(), 0u);
}

}  // namespace
}  // namespace quire::engine::embedding_test
