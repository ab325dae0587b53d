#include "core/concurrent/recent_values.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace quire::concurrent {
namespace {

using Recent = RecentValues<int>;

void keep(Recent& recent, const std::string& name, int value) {
  recent.keep(name, std::make_shared<const int>(value), name.size());
}

TEST(RecentValues, FindsWhatIsKept) {
  Recent recent(3, 100);
  EXPECT_EQ(recent.find("a"), nullptr);
  keep(recent, "a", 1);
  ASSERT_TRUE(recent.find("a"));
  EXPECT_EQ(*recent.find("a"), 1);
}

TEST(RecentValues, TheOneAskedForLongestAgoGoesFirst) {
  Recent recent(3, 100);
  for (const char* name : {"a", "b", "c"}) keep(recent, name, 1);
  EXPECT_TRUE(recent.find("a"));
  keep(recent, "d", 1);
  EXPECT_EQ(recent.size(), 3u);
  EXPECT_FALSE(recent.find("b"));
  for (const char* name : {"a", "c", "d"}) EXPECT_TRUE(recent.find(name)) << name;
}

TEST(RecentValues, BytesHaveALimitTogetherAndEachForItself) {
  Recent recent(100, 10);
  keep(recent, std::string(9, 'a'), 1);
  keep(recent, "b", 1);
  EXPECT_EQ(recent.size(), 2u);
  keep(recent, "c", 1);
  EXPECT_EQ(recent.size(), 2u) << "eleven bytes are one too many: the first name went";
  keep(recent, std::string(10, 'd'), 1);
  EXPECT_TRUE(recent.find(std::string(10, 'd')));
  keep(recent, std::string(11, 'e'), 1);
  EXPECT_FALSE(recent.find(std::string(11, 'e')));
  EXPECT_TRUE(recent.find(std::string(10, 'd')));
  EXPECT_EQ(recent.num_bytes(), 10u);
  recent.keep("f", std::make_shared<const int>(1), 11);
  EXPECT_FALSE(recent.find("f")) << "it is what a value holds that counts";
}

TEST(RecentValues, TheFirstOfTwoThatAreTheSameStays) {
  Recent recent(3, 100);
  keep(recent, "a", 1);
  keep(recent, "a", 2);
  EXPECT_EQ(*recent.find("a"), 1);
  EXPECT_EQ(recent.size(), 1u);
}

TEST(RecentValues, WhatWasFoundOutlivesItsPlace) {
  Recent recent(1, 100);
  keep(recent, "a", 7);
  const std::shared_ptr<const int> held = recent.find("a");
  keep(recent, "b", 8);
  EXPECT_FALSE(recent.find("a"));
  EXPECT_EQ(*held, 7);
}

TEST(RecentValues, ThreadsMayAllLookAndKeep) {
  Recent recent(8, 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&recent, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string name = std::to_string((i * (t + 3)) % 20);
        if (const auto found = recent.find(name)) {
          EXPECT_EQ(std::to_string(*found), name);
        } else {
          keep(recent, name, std::stoi(name));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(recent.size(), 8u);
}

}  // namespace
}  // namespace quire::concurrent
