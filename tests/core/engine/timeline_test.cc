// What the engine tells of a sequence's way: how long it waited, what it ran, who interrupted it, when it spoke, how it
// ended.
#include "core/bridge/timeline.h"

#include <gtest/gtest.h>

#include "tests/support/engine_rig.h"
#include "tests/support/toy_runner.h"

namespace quire::engine::timeline_test {
namespace {

using namespace std::chrono_literals;
using bridge::Timeline;
using quire::testing::Client;
using quire::testing::EngineRig;
using quire::testing::RigOptions;
using quire::testing::toy_answer;
using quire::testing::toy_prompt;
using quire::testing::ToyRunner;

// A row takes a millisecond, and nothing else takes any time.
class TimelineTest : public ::testing::Test {
 protected:
  explicit TimelineTest(const RigOptions& options = {.num_blocks = 64, .prefix_caching = false, .cut_by_time = false})
      : runner_(options.num_blocks, options.block_tokens), rig_(options, runner_) {
    runner_.clock = &rig_.clock;
    runner_.row_time = 1ms;
  }
  void run(Client& client) {
    std::vector<Client> clients{client};
    rig_.run(clients);
    client = clients[0];
  }
  static const Timeline& of(const Client& client) { return *client.stream->timeline(); }

  RoleScope role_{engine_role};
  ToyRunner runner_;
  EngineRig rig_;
};

TEST_F(TimelineTest, ReportsOfTheQueueEveryChunkEveryTokenAndTheEnd) {
  Client client = rig_.submit(toy_prompt(100, 1), 3);
  EXPECT_FALSE(of(client).start());
  rig_.clock.advance(5ms);
  run(client);
  const Timeline& timeline = of(client);
  EXPECT_EQ(timeline.prompt_tokens(), 100u);
  EXPECT_EQ(timeline.start(), 5000u);
  EXPECT_EQ(timeline.cached_tokens(), 0u);
  const auto chunks = timeline.chunks().kept();
  ASSERT_EQ(chunks.size(), 2u);  // of 64 rows and of the rest
  EXPECT_EQ(chunks[0].at, 5000u);
  EXPECT_EQ(chunks[0].rows, 64u);
  EXPECT_EQ(chunks[0].took, 64000u);
  EXPECT_EQ(chunks[1].at, 69000u);
  EXPECT_EQ(chunks[1].rows, 36u);
  EXPECT_EQ(chunks[1].took, 36000u);
  const auto tokens = timeline.tokens().kept();
  EXPECT_EQ(std::vector<Timeline::Micros>(tokens.begin(), tokens.end()),
            (std::vector<Timeline::Micros>{105000, 106000, 107000}));
  EXPECT_EQ(timeline.preemptions().num(), 0u);
  EXPECT_EQ(timeline.end(), Timeline::End::kLength);
  EXPECT_EQ(timeline.ended(), 107000u);
}

TEST_F(TimelineTest, APreemptionIsReportedAndWhatIsComputedAgainIsAChunk) {
  Client client = rig_.submit(toy_prompt(10, 1), 4);
  rig_.clock.advance(1ms);
  rig_.iterate();
  rig_.iterate();
  EXPECT_EQ(of(client).tokens().num(), 2u);
  rig_.engine.preempt_all();
  run(client);
  const Timeline& timeline = of(client);
  ASSERT_EQ(timeline.preemptions().num(), 1u);
  EXPECT_EQ(timeline.preemptions().kept()[0].at, 12000u);
  EXPECT_FALSE(timeline.preemptions().kept()[0].swapped);
  ASSERT_EQ(timeline.chunks().num(), 2u);
  EXPECT_EQ(timeline.chunks().kept()[1].rows, 12u) << "the prompt and two tokens";
  EXPECT_EQ(timeline.start(), 1000u) << "its first run is what it waited for";
  EXPECT_EQ(timeline.tokens().num(), 4u);
  EXPECT_EQ(timeline.longest_gap()->token, 2u);
}

class DryPoolTest : public TimelineTest {
 protected:
  DryPoolTest()
      : TimelineTest({.num_blocks = 12,
                      .max_model_len = 160,
                      .prefix_caching = false,
                      .num_swap_blocks = 64,
                      .cut_by_time = false}) {}
};

TEST_F(DryPoolTest, OnlySequencesThatADryPoolPreemptedReportAPreemption) {
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 6; ++i) clients.push_back(rig_.submit(toy_prompt(20, i), 120));
  rig_.run(clients);
  std::uint64_t emitted = 0;
  for (const Client& client : clients) {
    emitted += of(client).preemptions().num();
    for (const Timeline::Preemption& one : of(client).preemptions().kept()) EXPECT_TRUE(one.swapped);
    EXPECT_EQ(of(client).tokens().num(), 120u);
  }
  EXPECT_GT(emitted, 0u);
  EXPECT_EQ(emitted, rig_.metrics.preemptions.value());
  EXPECT_EQ(of(clients[0]).preemptions().num(), 0u) << "the oldest is not sent back";
}

TEST_F(TimelineTest, CachedTokensAreReportedAndNotRun) {
  ToyRunner runner(64, 16);
  EngineRig rig({.num_blocks = 64, .max_num_batched_tokens = 256}, runner);
  std::vector<Client> first{rig.submit(toy_prompt(100, 1), 2)};
  rig.run(first);
  std::vector<Client> second{rig.submit(toy_prompt(100, 1), 2)};
  rig.run(second);
  EXPECT_EQ(of(second[0]).cached_tokens(), 99u);
  ASSERT_EQ(of(second[0]).chunks().num(), 1u);
  EXPECT_EQ(of(second[0]).chunks().kept()[0].rows, 1u);
}

TEST_F(TimelineTest, EveryEndHasItsName) {
  const auto answer = toy_answer(toy_prompt(5, 9), EngineRig::greedy(), 20);
  Client stops = rig_.submit(toy_prompt(5, 9), 20, EngineRig::greedy(), {answer[6]});
  run(stops);
  EXPECT_EQ(of(stops).end(), Timeline::End::kStop);

  Client satisfied = rig_.submit(toy_prompt(5, 9), 20);
  Client cancelled = rig_.submit(toy_prompt(5, 9), 20);
  rig_.iterate();
  satisfied.stream->satisfy();
  cancelled.stream->cancel();
  rig_.iterate();
  EXPECT_EQ(of(satisfied).end(), Timeline::End::kStop);
  EXPECT_EQ(of(cancelled).end(), Timeline::End::kAborted);

  runner_.poisoned_seed = 666;
  Client failed = rig_.submit(toy_prompt(6, 2), 20, {.temperature = 1.0f, .seed = 666});
  run(failed);
  EXPECT_EQ(of(failed).end(), Timeline::End::kFailed);

  Client refused = rig_.submit({-1}, 20);
  run(refused);
  EXPECT_EQ(of(refused).end(), Timeline::End::kFailed);
  EXPECT_FALSE(of(refused).start()) << "it never ran";
}

TEST_F(TimelineTest, ASearchReportsItsRoundsOnItsFirstStream) {
  auto clients = rig_.submit_many(toy_prompt(20, 3), 6, {.beam = flow::BeamSearch{3, 2, 1.0}});
  rig_.run(clients);
  const Timeline& timeline = of(clients[0]);
  EXPECT_EQ(timeline.prompt_tokens(), 20u);
  ASSERT_GE(timeline.chunks().num(), 1u);
  EXPECT_EQ(timeline.chunks().kept()[0].rows, 20u);
  EXPECT_EQ(timeline.tokens().num(), 6u) << "a round each, however many hypotheses";
  EXPECT_EQ(timeline.tokens().kept()[1] - timeline.tokens().kept()[0], 3000u) << "of three rows";
  EXPECT_EQ(timeline.end(), Timeline::End::kLength);
}

}  // namespace
}  // namespace quire::engine::timeline_test
