#include "api/services/cache_namespace.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace quire::api::cache_namespace_test {
namespace {

// Computed apart from this code, from the layout that the header describes.
TEST(CacheNamespace, IsTheDigestThatItsHeaderDescribes) {
  EXPECT_EQ(cache_namespace({.numeric_mode = "fp", .adapter = "", .tenant = "0", .salt = ""}),
            (CacheNamespace{0x5a3e2ba275ed2eeb, 0x40b9f4d5ceefacba}));
  EXPECT_EQ(
      cache_namespace({.numeric_mode = "fp", .adapter = "lora", .tenant = "7", .salt = std::string("salt\0é", 7)}),
      (CacheNamespace{0x4d490d51ed0e5855, 0x6c0f7c13f0359057}));
}

TEST(CacheNamespace, EqualPartsMeet) {
  const CacheNamespaceParts parts{.numeric_mode = "m", .adapter = "a", .tenant = "t", .salt = "s"};
  EXPECT_EQ(cache_namespace(parts), cache_namespace(parts));
}

// Parts that run into each other, lengths that look like text, zeros: whatever moves from one part to the next is told.
TEST(CacheNamespace, NoTwoListsOfPartsMeet) {
  const std::string zero(1, '\0');
  const std::string length = std::string("\1\0\0\0\0\0\0\0", 8);
  const std::vector<std::string> words = {"", "a", "aa", "b", "ab", zero, zero + "a", length, length + "a"};
  std::set<CacheNamespace> namespaces;
  for (const std::string& mode : words) {
    for (const std::string& adapter : words) {
      for (const std::string& tenant : words) {
        for (const std::string& salt : words) {
          namespaces.insert(
              cache_namespace({.numeric_mode = mode, .adapter = adapter, .tenant = tenant, .salt = salt}));
        }
      }
    }
  }
  EXPECT_EQ(namespaces.size(), words.size() * words.size() * words.size() * words.size());
}

TEST(CacheNamespace, NoTenantMeetsAnotherOrTheDefaultOne) {
  std::set<CacheNamespace> namespaces;
  const std::vector<std::string> tenants = {"", "0", "=0", "=", "a", "b"};
  for (const std::string& tenant : tenants) namespaces.insert(namespace_of_tenant("fp", tenant, "s"));
  EXPECT_EQ(namespaces.size(), tenants.size());
  EXPECT_EQ(namespace_of_tenant("fp", "", "s"),
            cache_namespace({.numeric_mode = "fp", .adapter = "", .tenant = "0", .salt = "s"}));
}

TEST(CacheNamespace, AUniqueOneIsNobodyElses) {
  std::set<CacheNamespace> namespaces;
  for (int i = 0; i < 100; ++i) namespaces.insert(unique_cache_namespace());
  EXPECT_EQ(namespaces.size(), 100u);
}

}  // namespace
}  // namespace quire::api::cache_namespace_test
