// draw() does not allocate: this binary counts every operator new.
#include <gtest/gtest.h>

#include <memory>

#include "core/sample/adjustment.h"
#include "core/sample/sampler.h"
#include "tests/core/sample/rows.h"
#include "tests/support/allocation_counter.h"

namespace quire::sample::allocation_test {
namespace {

TEST(Draw, AllocatesNothing) {
  const std::vector<float> row = bell_row(5000, 3.0f, 1);
  Scratch scratch(row.size());
  Params params;
  params.top_k = 40;
  params.top_p = 0.9f;
  params.min_p = 0.01f;
  params.typical_p = 0.9f;
  params.logprob = true;
  params.num_top = kMaxTop;
  std::vector<Candidate> room(kMaxTop);
  const std::size_t before = quire::testing::num_allocations;
  for (std::uint32_t position = 0; position < 10; ++position) draw(row, params, position, scratch, room);
  EXPECT_EQ(quire::testing::num_allocations, before);
  EXPECT_GT(before, 0u);  // the counter works
}

TEST(Adjustment, AllocatesNothingOnceMade) {
  const std::vector<float> row = bell_row(5000, 3.0f, 1);
  Scratch scratch(row.size());
  const auto rules = std::make_shared<const Rules>(
      Rules{1.1f, 0.5f, 0.5f, {{1, 1.0f}, {4000, -5.0f}}, {}, {{7}, {1, 2}, {3, 4, 5}}, 20});
  std::vector<TokenId> answer;
  answer.reserve(500);
  const std::vector<TokenId> prompt = {1, 2, 3, 3, 2};
  Adjustment adjustment(rules, prompt, {0, 9}, 500);
  const std::size_t before = quire::testing::num_allocations;
  for (TokenId i = 0; i < 500; ++i) {
    draw(row, {}, static_cast<std::uint32_t>(i), scratch, {}, adjustment.edits());
    answer.push_back(i * 9);  // no two alike
    adjustment.append(answer);
  }
  EXPECT_EQ(quire::testing::num_allocations, before);
}

}  // namespace
}  // namespace quire::sample::allocation_test
