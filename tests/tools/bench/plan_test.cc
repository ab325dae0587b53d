#include "tools/bench/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace quire::tools {
namespace {

TEST(BenchPlan, GivesEverySequenceSlotsOfItsOwn) {
  const flow::StepPlan plan = bench_plan(3, 20, 20, 4, 16, 1000);
  ASSERT_EQ(plan.sequences.size(), 3u);
  EXPECT_EQ(plan.tokens.size(), 60u);
  std::vector<std::uint32_t> slots = plan.slots;
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(std::unique(slots.begin(), slots.end()), slots.end());
  for (const flow::PlannedSequence& sequence : plan.sequences) EXPECT_EQ(sequence.num_table, 3u);
}

}  // namespace
}  // namespace quire::tools
