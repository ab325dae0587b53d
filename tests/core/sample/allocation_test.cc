// draw() does not allocate: this binary counts every operator new.
#include <gtest/gtest.h>

#include "core/sample/sampler.h"
#include "tests/core/sample/rows.h"
#include "tests/support/allocation_counter.h"

namespace quire::sample {
namespace {

TEST(Draw, AllocatesNothing) {
  const std::vector<float> row = bell_row(5000, 3.0f, 1);
  Scratch scratch(row.size());
  Params params;
  params.top_k = 40;
  params.top_p = 0.9f;
  params.min_p = 0.01f;
  params.logprob = true;
  params.num_top = kMaxTop;
  std::vector<Candidate> room(kMaxTop);
  const std::size_t before = quire::testing::num_allocations;
  for (std::uint32_t position = 0; position < 10; ++position) draw(row, params, position, scratch, room);
  EXPECT_EQ(quire::testing::num_allocations, before);
  EXPECT_GT(before, 0u);  // the counter works
}

}  // namespace
}  // namespace quire::sample
