#include "core/concurrent/gate.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/core/concurrent/stress.h"

namespace quire::concurrent {
namespace {

TEST(Gate, CountsWhoIsInside) {
  Gate gate;
  {
    const auto first = gate.enter();
    const auto second = gate.enter();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(gate.inside(), 2u);
  }
  EXPECT_EQ(gate.inside(), 0u);
  EXPECT_FALSE(gate.closed());
}

TEST(Gate, LetsNobodyInOnceClosedAndThoseInsideLeave) {
  Gate gate;
  auto inside = gate.enter();
  gate.close();
  gate.close();
  EXPECT_TRUE(gate.closed());
  EXPECT_FALSE(gate.enter());
  EXPECT_EQ(gate.inside(), 1u);
  inside.reset();
  EXPECT_EQ(gate.inside(), 0u);
  EXPECT_FALSE(gate.enter());
}

TEST(Gate, AMovedHolderLeavesOnce) {
  Gate gate;
  {
    auto first = gate.enter();
    const Gate::Holder moved(std::move(*first));
    first.reset();
    EXPECT_EQ(gate.inside(), 1u);
  }
  EXPECT_EQ(gate.inside(), 0u);
}

TEST(Gate, ClosedAndEmptyMeansThatNobodyIsInsideAnyMore) {
  for (int round = 0; round < 200 / kStressDivisor; ++round) {
    Gate gate;
    int inside_work[4] = {};  // plain: the gate alone orders it
    std::vector<std::jthread> workers;
    for (int& work : inside_work) {
      workers.emplace_back([&gate, &work] {
        while (const auto holder = gate.enter()) ++work;
      });
    }
    while (gate.inside() == 0 && !gate.closed() && round % 2 == 0) std::this_thread::yield();
    gate.close();
    while (gate.inside() != 0) std::this_thread::yield();
    for (int& work : inside_work) work = -1;  // a race if a worker were still inside
    workers.clear();
    for (const int work : inside_work) ASSERT_EQ(work, -1) << "round " << round;
  }
}

}  // namespace
}  // namespace quire::concurrent
