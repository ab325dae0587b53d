// After the first steps a turn allocates nothing: operator new is counted while many sequences decode.
#include <gtest/gtest.h>

#include "tests/support/allocation_counter.h"
#include "tests/support/decoding_crowd.h"

namespace quire::testing {
namespace {

constexpr std::uint32_t kWarmUp = 2;  // the prompts, and the first token behind them

TEST(Planning, AllocatesNothingOnceSequencesDecode) {
  const RoleScope role(engine_role);
  for (const bool prefix_caching : {false, true}) {
    for (const std::uint32_t num_sequences : {1u, 64u}) {
      const CrowdOptions options{.num_sequences = num_sequences, .prefix_caching = prefix_caching};
      ScheduledCrowd crowd(options);
      for (std::uint32_t i = 0; i < kWarmUp; ++i) crowd.step();
      const long before = num_allocations.load();
      for (std::uint32_t i = kWarmUp; i < options.max_tokens; ++i) {
        crowd.step();
        ASSERT_EQ(crowd.num_planned(), num_sequences);
        ASSERT_EQ(num_allocations.load(), before) << num_sequences << " sequences, step " << i;
      }
    }
  }
}

TEST(Turns, AllocateNothingOnceSequencesDecode) {
  const RoleScope role(engine_role);
  for (const bool prefix_caching : {false, true}) {
    for (const std::uint32_t num_sequences : {1u, 64u}) {
      const CrowdOptions options{.num_sequences = num_sequences, .prefix_caching = prefix_caching};
      EngineCrowd crowd(options);
      for (std::uint32_t i = 0; i < kWarmUp; ++i) crowd.step();
      const long before = num_allocations.load();
      for (std::uint32_t i = kWarmUp; i + 1 < options.max_tokens; ++i) {  // the last one says the end
        crowd.step();
        crowd.read_all();
        ASSERT_EQ(crowd.num_running(), num_sequences);
        ASSERT_EQ(num_allocations.load(), before) << num_sequences << " sequences, step " << i;
      }
    }
  }
}

}  // namespace
}  // namespace quire::testing
