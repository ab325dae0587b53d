#include "core/concurrent/latest.h"

#include <gtest/gtest.h>

#include <thread>

namespace quire::concurrent {
namespace {

TEST(Latest, WhoHasTakenAValueKeepsIt) {
  Latest<int> latest(std::make_shared<const int>(1));
  const auto taken = latest.get();
  const std::weak_ptr<const int> first = taken;
  latest.put(std::make_shared<const int>(2));
  EXPECT_EQ(*taken, 1);
  EXPECT_EQ(*latest.get(), 2);
  EXPECT_EQ(first.use_count(), 1) << "nobody else holds the old one";
}

TEST(Latest, IsReadWhileItIsReplaced) {
  Latest<int> latest(std::make_shared<const int>(0));
  std::thread writer([&] {
    for (int i = 1; i <= 1000; ++i) latest.put(std::make_shared<const int>(i));
  });
  for (int last = 0; last < 1000;) {
    const int now = *latest.get();
    ASSERT_GE(now, last);
    last = now;
  }
  writer.join();
}

}  // namespace
}  // namespace quire::concurrent
