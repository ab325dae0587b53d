#include "core/bridge/cache_feed.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace quire::bridge {
namespace {

CacheFeed::Batch batch(std::uint64_t number) {
  auto made = std::make_unique<flow::CacheChanges>();
  made->number = number;
  return made;
}

bool is_rung(const CacheFeed& feed, int wait_ms = 0) {
  pollfd wait{feed.wake_fd(), POLLIN, 0};
  return poll(&wait, 1, wait_ms) == 1;
}

TEST(CacheFeed, GivesBatchesInTheOrderTheyCame) {
  CacheFeed feed(8);
  for (std::uint64_t i = 0; i < 5; ++i) feed.put(batch(i));
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(feed.take()->number, i);
  EXPECT_EQ(feed.take(), nullptr);
}

TEST(CacheFeed, IsFullAtItsLimitAndNotBefore) {
  for (const std::size_t limit : {1u, 2u, 3u, 5u, 64u}) {
    CacheFeed feed(limit);
    for (std::size_t round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < limit; ++i) {
        EXPECT_FALSE(feed.full());
        feed.put(batch(i));
      }
      EXPECT_TRUE(feed.full());
      feed.take();
      EXPECT_FALSE(feed.full());
      while (feed.take()) continue;
    }
  }
}

TEST(CacheFeed, RingsForABatchAndForAWakeUntilItIsDrained) {
  CacheFeed feed(8);
  EXPECT_FALSE(is_rung(feed));
  feed.put(batch(0));
  feed.put(batch(1));
  EXPECT_TRUE(is_rung(feed));
  feed.drain();
  EXPECT_FALSE(is_rung(feed));
  feed.wake();
  EXPECT_TRUE(is_rung(feed));
  feed.drain();
  feed.drain();  // nothing to hear is nothing wrong
  EXPECT_FALSE(is_rung(feed));
}

TEST(CacheFeed, WhoWaitsForTheDescriptorMissesNothing) {
  constexpr std::uint64_t kNum = 20000;
  CacheFeed feed(4);
  std::uint64_t next = 0;
  std::thread publisher([&] {
    while (next < kNum) {
      ASSERT_TRUE(is_rung(feed, 10000));
      feed.drain();
      while (const CacheFeed::Batch one = feed.take()) ASSERT_EQ(one->number, next++);
    }
  });
  for (std::uint64_t i = 0; i < kNum; ++i) {
    while (feed.full()) std::this_thread::yield();
    feed.put(batch(i));
  }
  publisher.join();
  EXPECT_EQ(next, kNum);
}

}  // namespace
}  // namespace quire::bridge
