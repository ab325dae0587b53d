#include "api/workers.h"

#include <gtest/gtest.h>

#include <future>

namespace quire::api::workers_test {
namespace {

TEST(Workers, ALaneThatIsHeldUpHoldsUpNoOther) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::promise<void> done;
  Workers workers(1, 100);
  const auto finish = [&] { EXPECT_TRUE(workers.post(Lane::kWriting, 0, [&] { done.set_value(); })); };
  ASSERT_TRUE(workers.post(Lane::kSlowGrammar, 0, [open] { open.wait(); }));
  ASSERT_TRUE(workers.post(Lane::kReading, 10, [&] { EXPECT_TRUE(workers.post(Lane::kQuickGrammar, 10, finish)); }));
  done.get_future().wait();
  gate.set_value();
}

TEST(Workers, TakeAsManyGrammarsAsMayWaitAndBytesOfBodies) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  const auto wait = [open] { open.wait(); };
  Workers workers(1, 100);
  for (const Lane lane : {Lane::kQuickGrammar, Lane::kSlowGrammar}) {
    for (std::size_t i = 0; i < Workers::kMaxGrammars; ++i) EXPECT_TRUE(workers.post(lane, 1000, wait)) << i;
    EXPECT_FALSE(workers.post(lane, 0, wait));
  }
  EXPECT_TRUE(workers.post(Lane::kReading, 99, wait));
  EXPECT_FALSE(workers.post(Lane::kReading, 2, wait));
  EXPECT_TRUE(workers.post(Lane::kReading, 1, wait));
  gate.set_value();
}

}  // namespace
}  // namespace quire::api::workers_test
