#include "api/openai/cache_root.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace quire::api::openai::cache_root_test {
namespace {

// Computed apart from this code, from the layout that the header describes.
TEST(CacheRoot, IsTheDigestThatItsHeaderDescribes) {
  EXPECT_EQ(cache_root({.numeric_mode = "fp", .adapter = "", .tenant = "0", .salt = ""}),
            (CacheRoot{0x5a3e2ba275ed2eeb, 0x40b9f4d5ceefacba}));
  EXPECT_EQ(cache_root({.numeric_mode = "fp", .adapter = "lora", .tenant = "7", .salt = std::string("salt\0é", 7)}),
            (CacheRoot{0x4d490d51ed0e5855, 0x6c0f7c13f0359057}));
}

TEST(CacheRoot, EqualPartsMeet) {
  const CacheRootParts parts{.numeric_mode = "m", .adapter = "a", .tenant = "t", .salt = "s"};
  EXPECT_EQ(cache_root(parts), cache_root(parts));
}

// Parts that run into each other, lengths that look like text, zeros: whatever moves from one part to the next is told.
TEST(CacheRoot, NoTwoListsOfPartsMeet) {
  const std::string zero(1, '\0');
  const std::string length = std::string("\1\0\0\0\0\0\0\0", 8);
  const std::vector<std::string> words = {"", "a", "aa", "b", "ab", zero, zero + "a", length, length + "a"};
  std::set<CacheRoot> roots;
  for (const std::string& mode : words) {
    for (const std::string& adapter : words) {
      for (const std::string& tenant : words) {
        for (const std::string& salt : words) {
          roots.insert(cache_root({.numeric_mode = mode, .adapter = adapter, .tenant = tenant, .salt = salt}));
        }
      }
    }
  }
  EXPECT_EQ(roots.size(), words.size() * words.size() * words.size() * words.size());
}

TEST(CacheRoot, NoTenantMeetsAnotherOrTheDefaultOne) {
  std::set<CacheRoot> roots;
  const std::vector<std::string> tenants = {"", "0", "=0", "=", "a", "b"};
  for (const std::string& tenant : tenants) roots.insert(root_of_tenant("fp", tenant, "s"));
  EXPECT_EQ(roots.size(), tenants.size());
  EXPECT_EQ(root_of_tenant("fp", "", "s"),
            cache_root({.numeric_mode = "fp", .adapter = "", .tenant = "0", .salt = "s"}));
}

TEST(CacheRoot, AUniqueOneIsNobodyElses) {
  std::set<CacheRoot> roots;
  for (int i = 0; i < 100; ++i) roots.insert(unique_cache_root());
  EXPECT_EQ(roots.size(), 100u);
}

}  // namespace
}  // namespace quire::api::openai::cache_root_test
