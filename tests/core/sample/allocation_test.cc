// draw() does not allocate: this binary counts every operator new.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "core/sample/sampler.h"
#include "tests/core/sample/rows.h"

namespace {
std::size_t num_allocations = 0;
}  // namespace

// noinline: else g++ sees malloc() or free() meet the other half of an inlined pair, and warns.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++num_allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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
  const std::size_t before = num_allocations;
  for (std::uint32_t position = 0; position < 10; ++position) draw(row, params, position, scratch, room);
  EXPECT_EQ(num_allocations, before);
  EXPECT_GT(before, 0u);  // the counter works
}

}  // namespace
}  // namespace quire::sample
