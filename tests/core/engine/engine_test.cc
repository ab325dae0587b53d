#include "core/engine/engine.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/engine/engine_thread.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::engine_test {
namespace {

using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyRunner;

class EngineTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

struct Spec {
  std::uint32_t prompt, max_tokens, arrival;
};

// The notebook's four requests: different lengths, arriving at steps 0, 2, 4 and 6.
constexpr Spec kNotebook[] = {{3, 10, 0}, {6, 25, 2}, {4, 8, 4}, {5, 18, 6}};

TEST_F(EngineTest, TheNotebooksRequestsBatchedAnswerAsAlone) {
  ToyRunner runner(64, 4);
  EngineRig rig({.num_blocks = 64, .block_tokens = 4}, runner);
  std::vector<Client> clients;
  for (const Spec& spec : kNotebook) {
    while (rig.iterations < spec.arrival) rig.iterate();
    clients.push_back(rig.submit(toy_prompt(spec.prompt, spec.prompt), spec.max_tokens));
  }
  rig.run(clients);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(kNotebook[i].prompt, kNotebook[i].prompt), EngineRig::greedy(),
                                            kNotebook[i].max_tokens));
    EXPECT_EQ(clients[i].finish, flow::Finish::kLength);
  }
  EXPECT_EQ(rig.pool.num_held(), 0u);
  EXPECT_EQ(rig.metrics.preemptions.value(), 0u);
}

TEST_F(EngineTest, MetricsCountThePoolsBlocksBeforeTheFirstStep) {
  ToyRunner runner(64, 4);
  const EngineRig rig({.num_blocks = 64, .block_tokens = 4}, runner);
  EXPECT_EQ(rig.metrics.kv_blocks_empty.value(), 64.0);
  EXPECT_EQ(rig.metrics.kv_blocks_held.value(), 0.0);
}

TEST_F(EngineTest, WithAPoolOfEightBlocksTheyAllStillFinishAndEveryBlockComesBack) {
  ToyRunner runner(8, 4);
  EngineRig rig({.num_blocks = 8, .block_tokens = 4}, runner);
  std::vector<Client> clients;
  for (const Spec& spec : kNotebook)
    clients.push_back(rig.submit(toy_prompt(spec.prompt, spec.prompt), spec.max_tokens));
  rig.run(clients);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i].tokens, toy_answer(toy_prompt(kNotebook[i].prompt, kNotebook[i].prompt), EngineRig::greedy(),
                                            kNotebook[i].max_tokens));
  }
  EXPECT_GT(rig.metrics.preemptions.value() + 0u, 0u) << "the pool was meant to run dry";
  EXPECT_EQ(rig.pool.num_held(), 0u);
  rig.pool.check_invariants();
}

TEST_F(EngineTest, TokensDoNotDependOnPoolBatchChunkArrivalOrPrefixCache) {
  for (std::uint32_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint32_t block_tokens = 1u << (random() % 6);
    const std::uint32_t max_model_len = 48 + random() % 100;
    RigOptions options;
    options.block_tokens = block_tokens;
    options.max_num_seqs = 1 + random() % 8;
    options.max_num_batched_tokens = options.max_num_seqs + random() % 40;
    options.max_model_len = max_model_len;
    options.num_blocks = kv::blocks_for(max_model_len, block_tokens) + random() % 8;
    options.prefix_caching = random() % 4 != 0;
    options.hash_bits = random() % 2 ? 64 : 3;  // with 3 bits most buckets collide
    ToyRunner runner(options.num_blocks, block_tokens);
    EngineRig rig(options, runner);
    std::vector<Client> clients;
    std::vector<std::vector<TokenId>> expected;
    const std::uint32_t num_requests = 1 + random() % 12;
    for (std::uint32_t i = 0; i < num_requests; ++i) {
      for (std::uint32_t wait = random() % 5; wait > 0; --wait) {
        rig.iterate();
        for (Client& client : clients) client.read_all();
      }
      const std::uint32_t length = 1 + random() % 40;
      const std::uint32_t stem = random() % 3;  // prompts of one stem begin alike
      const std::uint32_t max_tokens = 1 + random() % (max_model_len - length);
      const sample::Params params{.temperature = random() % 2 ? 0.0f : 1.0f, .seed = random() % 100};
      clients.push_back(rig.submit(toy_prompt(length, stem), max_tokens, params));
      expected.push_back(toy_answer(toy_prompt(length, stem), params, max_tokens));
    }
    rig.run(clients);
    for (std::size_t i = 0; i < clients.size(); ++i) ASSERT_EQ(clients[i].tokens, expected[i]) << "request " << i;
    ASSERT_EQ(rig.pool.num_held(), 0u);
    ASSERT_EQ(rig.admission.waiting_sequences(), 0u);
    for (const std::uint32_t rows : runner.rows_in_step) ASSERT_LE(rows, options.max_num_batched_tokens);
  }
}

TEST_F(EngineTest, ASecondRequestComputesOnlyWhatTheFirstDidNot) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  std::vector<Client> first{rig.submit(toy_prompt(100, 1), 4)};
  rig.run(first);
  EXPECT_EQ(first[0].stream->cached_tokens(), 0u);
  EXPECT_EQ(rig.pool.num_held(), 0u) << "kept blocks are held by nobody";
  std::vector<Client> second{rig.submit(toy_prompt(100, 1), 4)};
  rig.iterate();
  EXPECT_EQ(runner.rows_in_step.back(), 1u) << "six full blocks and part of the seventh were there";
  EXPECT_EQ(runner.copies, 1u) << "the seventh is somebody else's";
  rig.run(second);
  EXPECT_EQ(second[0].stream->cached_tokens(), 99u);
  EXPECT_EQ(second[0].tokens, first[0].tokens);
  EXPECT_EQ(rig.metrics.prefix_cache_hits.value(), 99u);
  EXPECT_EQ(rig.metrics.prefix_cache_queries.value(), 200u);
}

TEST_F(EngineTest, APromptThatIsCachedWholeStillRunsItsLastToken) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  for (const std::uint32_t length : {31u, 32u, 33u}) {
    std::vector<Client> first{rig.submit(toy_prompt(length, length), 4)};
    rig.run(first);
    std::vector<Client> second{rig.submit(toy_prompt(length, length), 4)};
    rig.run(second);
    EXPECT_EQ(second[0].stream->cached_tokens(), length - 1) << length;
    EXPECT_EQ(second[0].tokens, first[0].tokens);
  }
}

TEST_F(EngineTest, EqualPromptsThatRanTogetherAreFoldedIntoOneCopy) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 512}, runner);
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(rig.submit(toy_prompt(64, 1), 8));
  for (int iteration = 0; iteration < 4; ++iteration) rig.iterate();
  EXPECT_EQ(rig.pool.num_held(), 4u + 4u) << "four shared blocks of prompt, one of its own for each";
  rig.run(clients);
  for (const Client& client : clients) EXPECT_EQ(client.tokens, clients[0].tokens);
}

TEST_F(EngineTest, ASequenceSentBackFindsItsOwnBlocksAgain) {
  ToyRunner runner(8, 4);
  EngineRig rig({.num_blocks = 8, .block_tokens = 4}, runner);
  std::vector<Client> clients;
  for (const Spec& spec : kNotebook)
    clients.push_back(rig.submit(toy_prompt(spec.prompt, spec.prompt), spec.max_tokens));
  rig.run(clients);
  std::uint64_t rows = 0;
  for (const std::uint32_t n : runner.rows_in_step) rows += n;

  ToyRunner plain_runner(8, 4);
  EngineRig plain({.num_blocks = 8, .block_tokens = 4, .prefix_caching = false}, plain_runner);
  std::vector<Client> again;
  for (const Spec& spec : kNotebook)
    again.push_back(plain.submit(toy_prompt(spec.prompt, spec.prompt), spec.max_tokens));
  plain.run(again);
  std::uint64_t plain_rows = 0;
  for (const std::uint32_t n : plain_runner.rows_in_step) plain_rows += n;
  EXPECT_LT(rows, plain_rows);
  for (std::size_t i = 0; i < clients.size(); ++i) EXPECT_EQ(clients[i].tokens, again[i].tokens);
}

TEST_F(EngineTest, BlocksOfARequestWhoseLogitsAreNotFiniteNeverEnterTheCache) {
  ToyRunner runner(64, 16);
  runner.poisoned_seed = 666;
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  std::vector<Client> first{rig.submit(toy_prompt(100, 1), 4, {.temperature = 1.0f, .seed = 666})};
  rig.run(first);
  EXPECT_EQ(first[0].finish, flow::Finish::kFailed);
  EXPECT_EQ(rig.pool.num_cached_blocks(), 0u);
  std::vector<Client> second{rig.submit(toy_prompt(100, 1), 4)};
  rig.run(second);
  EXPECT_EQ(second[0].stream->cached_tokens(), 0u);
}

TEST_F(EngineTest, ALongPromptNeverStallsARunningStream) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_seqs = 4, .max_num_batched_tokens = 8}, runner);
  std::vector<Client> clients;
  clients.push_back(rig.submit(toy_prompt(4, 1), 60));
  rig.iterate();
  clients[0].read_all();
  ASSERT_EQ(clients[0].tokens.size(), 1u);
  clients.push_back(rig.submit(toy_prompt(400, 2), 4));
  for (std::size_t iteration = 2; iteration <= 50;
       ++iteration) {  // 400 tokens at 7 a step: the stream gets its token in each of them
    rig.iterate();
    clients[0].read_all();
    ASSERT_EQ(clients[0].tokens.size(), iteration);
  }
  rig.run(clients);
  EXPECT_EQ(clients[1].tokens, toy_answer(toy_prompt(400, 2), EngineRig::greedy(), 4));
}

TEST_F(EngineTest, OnASlowDevicePromptsAreCutByTheMeasuredTimeOfARowWhileSomebodyStreams) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_seqs = 4, .max_num_batched_tokens = 400}, runner);
  runner.clock = &rig.clock;
  runner.row_time = std::chrono::milliseconds(2);
  std::vector<Client> clients;
  clients.push_back(rig.submit(toy_prompt(300, 1), 30));
  rig.iterate();
  EXPECT_EQ(runner.rows_in_step.back(), 128u) << "a row's time is not known yet";
  rig.iterate();
  EXPECT_EQ(runner.rows_in_step.back(), 172u) << "nobody streams: a second holds 500 rows";
  clients.push_back(rig.submit(toy_prompt(300, 2), 4));
  rig.run(clients);
  for (std::size_t step = 2; step < runner.rows_in_step.size(); ++step) {
    EXPECT_LE(runner.rows_in_step[step], 1u + 50u) << "100 ms hold 50 rows of 2 ms";
  }
  EXPECT_EQ(runner.rows_in_step[2], 1u + 50u);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(300, 1), EngineRig::greedy(), 30));
  EXPECT_EQ(clients[1].tokens, toy_answer(toy_prompt(300, 2), EngineRig::greedy(), 4));
}

TEST_F(EngineTest, ACancelGivesItsBlocksBackWithinOneStepInEveryState) {
  ToyRunner runner(8, 16);
  EngineRig rig({.num_blocks = 8, .max_num_seqs = 2, .max_num_batched_tokens = 16}, runner);
  Client decoding = rig.submit(toy_prompt(4, 1), 50);
  rig.iterate();
  Client prefilling = rig.submit(toy_prompt(60, 2), 4);
  rig.iterate();
  Client queued = rig.submit(toy_prompt(5, 3), 4);
  rig.iterate();
  ASSERT_EQ(rig.pool.num_held(), 1u + 4u);
  queued.stream->cancel();
  rig.iterate();
  queued.read_all();
  EXPECT_EQ(queued.finish, flow::Finish::kCancelled);
  EXPECT_EQ(rig.admission.waiting_sequences(), 0u);
  prefilling.stream->cancel();
  rig.iterate();
  EXPECT_EQ(rig.pool.num_held(), 1u);
  decoding.stream->cancel();
  rig.iterate();
  EXPECT_EQ(rig.pool.num_held(), 0u);
  EXPECT_TRUE(rig.engine.idle());
  EXPECT_EQ(rig.metrics.success_abort.value(), 3u);
}

TEST_F(EngineTest, AnAnswerThatIsCompleteIsNoAbort) {
  ToyRunner runner(8, 16);
  EngineRig rig({.num_blocks = 8}, runner);
  Client client = rig.submit(toy_prompt(5, 9), 20);
  rig.iterate();
  client.stream->satisfy();
  rig.iterate();
  EXPECT_TRUE(rig.engine.idle());
  EXPECT_EQ(rig.metrics.success_stop.value(), 1u);
  EXPECT_EQ(rig.metrics.success_abort.value(), 0u);
}

TEST_F(EngineTest, AStopTokenEndsTheSequenceAndIsEmittedWithItsReason) {
  ToyRunner runner(8, 16);
  EngineRig rig({.num_blocks = 8}, runner);
  const auto answer = toy_answer(toy_prompt(5, 9), EngineRig::greedy(), 20);
  std::vector<Client> clients;
  clients.push_back(rig.submit(toy_prompt(5, 9), 20, EngineRig::greedy(), {answer[6]}));
  rig.run(clients);
  EXPECT_EQ(clients[0].finish, flow::Finish::kStop);
  EXPECT_EQ(clients[0].tokens, std::vector<TokenId>(answer.begin(), answer.begin() + 7));
}

TEST_F(EngineTest, AReaderThatStallsIsPausedLosesNothingAndIsDroppedAfterTheTimeout) {
  ToyRunner runner(32, 16);
  EngineRig rig({.num_blocks = 32}, runner);
  const auto answer = toy_answer(toy_prompt(5, 9), EngineRig::greedy(), 200);
  Client client = rig.submit(toy_prompt(5, 9), 200);
  for (int iteration = 0; iteration < 100; ++iteration) rig.iterate();
  EXPECT_EQ(runner.steps, bridge::TokenStream::kCapacity - 1);  // parked: the last place is kept for the end
  client.read_all();
  for (int iteration = 0; iteration < 100; ++iteration) rig.iterate();
  client.read_all();
  EXPECT_EQ(client.tokens, std::vector<TokenId>(answer.begin(), answer.begin() + 2 * 63));
  for (int iteration = 0; iteration < 100; ++iteration) rig.iterate();
  rig.clock.advance(std::chrono::seconds(29));
  rig.iterate();
  EXPECT_EQ(rig.engine.num_live(), 1u);
  rig.clock.advance(std::chrono::seconds(1));
  rig.iterate();
  EXPECT_EQ(rig.engine.num_live(), 0u);
  EXPECT_EQ(rig.pool.num_held(), 0u);
  client.read_all();
  EXPECT_EQ(client.finish, flow::Finish::kCancelled);
}

TEST_F(EngineTest, LogitsThatAreNotFiniteEndThatRequestAloneAndItsNeighboursNeverNotice) {
  ToyRunner runner(32, 16);
  runner.poisoned_seed = 666;
  EngineRig rig({.num_blocks = 32}, runner);
  std::vector<Client> clients;
  const sample::Params params{.temperature = 1.0f, .seed = 5};
  clients.push_back(rig.submit(toy_prompt(5, 1), 20, params));
  clients.push_back(rig.submit(toy_prompt(6, 2), 20, {.temperature = 1.0f, .seed = 666}));
  clients.push_back(rig.submit(toy_prompt(7, 3), 20, params));
  rig.run(clients);
  EXPECT_EQ(clients[0].tokens, toy_answer(toy_prompt(5, 1), params, 20));
  EXPECT_EQ(clients[1].finish, flow::Finish::kFailed);
  EXPECT_TRUE(clients[1].tokens.empty());
  EXPECT_EQ(clients[2].tokens, toy_answer(toy_prompt(7, 3), params, 20));
  EXPECT_EQ(rig.metrics.corrupted_requests.value(), 1u);
  EXPECT_EQ(rig.pool.num_held(), 0u);
}

TEST_F(EngineTest, ARequestThatSlippedPastValidationEndsAloneBeforeAnyKernelReadsIt) {
  ToyRunner runner(32, 16);
  EngineRig rig({.num_blocks = 32, .max_model_len = 100}, runner);
  std::vector<Client> clients;
  clients.push_back(rig.submit({1, 997}, 4));           // id == vocabulary
  clients.push_back(rig.submit({1, -1}, 4));            // negative id
  clients.push_back(rig.submit(toy_prompt(97, 1), 4));  // 101 > 100
  clients.push_back(rig.submit({}, 4));                 // nothing to condition on
  clients.push_back(rig.submit(toy_prompt(96, 1), 4));  // 100: fits
  clients.push_back(rig.submit({0, 996}, 4));           // the lowest and the highest id: fit
  rig.run(clients);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(clients[static_cast<std::size_t>(i)].finish, flow::Finish::kFailed) << i;
  EXPECT_EQ(clients[4].finish, flow::Finish::kLength);
  EXPECT_EQ(clients[5].finish, flow::Finish::kLength);
  EXPECT_EQ(rig.pool.num_held(), 0u);
}

TEST_F(EngineTest, OneWakeUpAStepForAllStreams) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 8; ++i) clients.push_back(rig.submit(toy_prompt(4, i), 10));
  rig.run(clients);
  EXPECT_EQ(rig.wakes, runner.steps);
}

TEST_F(EngineTest, ADeviceThatFailsEndsEveryStreamAndTurnsTheServerUnready) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 3; ++i) clients.push_back(rig.submit(toy_prompt(4, i), 10));
  runner.fail_next_collect = true;
  bool emitted = false;
  {
    EngineThread thread(rig.engine, rig.doorbell, rig.status, [&emitted] { emitted = true; });
    thread.start();
    while (!rig.status.failed()) std::this_thread::yield();
    thread.stop();
  }
  EXPECT_TRUE(emitted);
  for (Client& client : clients) {
    client.read_all();
    EXPECT_EQ(client.finish, flow::Finish::kFailed);
  }
  std::vector<bridge::Submission> late(1);
  late[0].request.prompt = {1};
  late[0].stream = rig.hub->open([] {});
  EXPECT_EQ(rig.admission.admit(late).error().code, Code::kUnavailable);
}

TEST_F(EngineTest, TheThreadSleepsWhenIdleWakesForWorkAndStops) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64}, runner);
  EngineThread thread(rig.engine, rig.doorbell, rig.status, [] {});
  thread.start();
  for (std::uint32_t i = 0; i < 50; ++i) {
    Client client = rig.submit(toy_prompt(4, i), 5);
    while (!client.done()) client.read_all();
    EXPECT_EQ(client.tokens, toy_answer(toy_prompt(4, i), EngineRig::greedy(), 5));
  }
  thread.stop();
  EXPECT_EQ(rig.engine.num_live(), 0u);
}

}  // namespace
}  // namespace quire::engine::engine_test
