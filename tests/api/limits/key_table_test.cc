#include "api/limits/key_table.h"

#include <gtest/gtest.h>

namespace quire::api::keys {
namespace {

KeyEntry entry(const std::string& name, const std::string& secret, const std::string& tenant = {}) {
  return {.name = name, .digest = digest_of(secret), .tenant = tenant};
}

TEST(KeyTable, FindsWhoseKeyItIs) {
  const KeyTable table({entry("alice", "one"), entry("bob", "two"), entry("carol", "three")}, nullptr);
  EXPECT_EQ(table.find("one")->name, "alice");
  EXPECT_EQ(table.find("two")->name, "bob");
  EXPECT_EQ(table.find("three")->name, "carol");
  for (const std::string& wrong : {std::string(), std::string("on"), std::string("one "), std::string("One"),
                                   std::string(100000, 'x'), hex_of(digest_of("one"))}) {
    EXPECT_EQ(table.find(wrong), nullptr) << wrong.substr(0, 70);
  }
  EXPECT_EQ(KeyTable({}, nullptr).find(""), nullptr);
}

TEST(KeyTable, AKeyIsATenantOfItsOwnUnlessItSaysAnother) {
  const KeyTable table({entry("a", "1"), entry("b", "2"), entry("c", "3", "team"), entry("d", "4", "team"),
                        entry("e", "5", "a"), entry("f", "6", "default")},
                       nullptr);
  const auto tenant = [&table](const char* secret) {
    const auto caller = table.find(secret);
    return std::pair(caller->tenant, caller->tenant_id);
  };
  EXPECT_NE(tenant("1"), tenant("2"));
  EXPECT_EQ(tenant("3"), tenant("4"));
  EXPECT_EQ(tenant("5"), tenant("1")) << "told to be";
  EXPECT_EQ(tenant("6"), std::pair(std::string(), 0u)) << "as without keys";
  for (const char* secret : {"1", "2", "3"}) EXPECT_NE(tenant(secret).second, 0u);
}

TEST(KeyTable, ANewTableKeepsAccountsAndNumbersOfThoseThatStay) {
  const KeyTable before({entry("a", "1"), entry("b", "2")}, nullptr);
  const auto held = before.find("2")->account->take({1, 1, 5}, TimePoint{});
  KeyEntry changed = entry("b", "new");
  changed.limits.max_running = 1;
  const KeyTable after({entry("c", "3"), changed}, &before);
  EXPECT_EQ(after.find("1"), nullptr);
  EXPECT_EQ(after.find("2"), nullptr) << "its key was changed";
  EXPECT_EQ(after.find("new")->account, before.find("2")->account);
  EXPECT_EQ(after.find("new")->tenant_id, before.find("2")->tenant_id);
  EXPECT_FALSE(after.find("new")->account->take({1, 1, 5}, TimePoint{}))
      << "what is under way counts, the limit is new";
  EXPECT_NE(after.find("3")->tenant_id, before.find("1")->tenant_id) << "a number is given once";
  const KeyTable last({entry("a", "1")}, &after);
  EXPECT_EQ(last.find("1")->tenant_id, before.find("1")->tenant_id);
}

}  // namespace
}  // namespace quire::api::keys
