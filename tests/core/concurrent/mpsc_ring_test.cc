#include "core/concurrent/mpsc_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/core/concurrent/stress.h"

namespace quire::concurrent {
namespace {

TEST(MpscRing, HoldsAtLeastWhatWasAskedAndAPowerOfTwo) {
  const std::pair<std::size_t, std::size_t> sizes[] = {{0, 2},       {1, 2},       {2, 2},      {3, 4},
                                                       {1023, 1024}, {1024, 1024}, {1025, 2048}};
  for (const auto& [asked, capacity] : sizes) EXPECT_EQ(MpscRing<int>(asked).capacity(), capacity) << asked;
}

TEST(MpscRing, IsFullAtItsCapacityAndNotOneBefore) {
  MpscRing<std::unique_ptr<int>> ring(8);
  for (int i = 0; i < 8; ++i) {
    auto value = std::make_unique<int>(i);
    ASSERT_TRUE(ring.try_push(value)) << i;
    EXPECT_EQ(value, nullptr) << "a pushed value is moved away";
  }
  auto value = std::make_unique<int>(8);
  EXPECT_FALSE(ring.try_push(value));
  EXPECT_NE(value, nullptr) << "a refused value is untouched";

  EXPECT_EQ(**ring.try_pop(), 0);
  EXPECT_TRUE(ring.try_push(value));
}

TEST(MpscRing, IsEmptyAgainWhenAllIsPopped) {
  MpscRing<int> ring(4);
  EXPECT_FALSE(ring.try_pop());
  int value = 7;
  ASSERT_TRUE(ring.try_push(value));
  EXPECT_EQ(ring.try_pop(), 7);
  EXPECT_FALSE(ring.try_pop());
}

TEST(MpscRing, KeepsTheOrderOverManyLaps) {
  MpscRing<int> ring(4);
  int pushed = 0;
  int popped = 0;
  for (int lap = 0; lap < 1000; ++lap) {
    for (int i = 0; i <= lap % 4; ++i, ++pushed) ASSERT_TRUE(ring.try_push(pushed));
    while (const auto value = ring.try_pop()) ASSERT_EQ(*value, popped++);
  }
  EXPECT_EQ(popped, pushed);
}

TEST(MpscRing, KeepsNothingOfWhatWasPopped) {
  struct CopyOnly {  // leaves itself behind when it is moved
    CopyOnly() = default;
    explicit CopyOnly(std::shared_ptr<int> p) : pointer(std::move(p)) {}
    CopyOnly(const CopyOnly&) = default;
    CopyOnly& operator=(const CopyOnly&) = default;
    std::shared_ptr<int> pointer;
  };
  MpscRing<CopyOnly> ring(2);
  const auto kept = std::make_shared<int>(1);
  {
    CopyOnly value(kept);
    ASSERT_TRUE(ring.try_push(value));
    ring.try_pop();
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(MpscRing, ManyProducersLoseNothingDoubleNothingAndKeepTheirOrder) {
  constexpr std::uint64_t kProducers = 4;
  constexpr std::uint64_t kEach = 100'000 / kStressDivisor;
  MpscRing<std::uint64_t> ring(16);  // small: full and empty happen all the time
  std::vector<std::jthread> producers;
  for (std::uint64_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&ring, producer] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        std::uint64_t value = producer << 32 | i;
        while (!ring.try_push(value)) std::this_thread::yield();
      }
    });
  }
  std::vector<std::uint64_t> next(kProducers);
  for (std::uint64_t popped = 0; popped < kProducers * kEach;) {
    const auto value = ring.try_pop();
    if (!value) {
      std::this_thread::yield();
      continue;
    }
    ++popped;
    ASSERT_EQ(*value & 0xffffffffu, next[*value >> 32]++);
  }
  EXPECT_FALSE(ring.try_pop());
}

}  // namespace
}  // namespace quire::concurrent
