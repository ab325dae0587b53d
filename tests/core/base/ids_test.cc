#include "core/base/ids.h"

#include <gtest/gtest.h>

#include <sstream>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace quire {
namespace {

// Ids of different things neither convert nor compare, and no number slips in unsaid.
static_assert(!std::is_convertible_v<std::uint32_t, BlockId>);
static_assert(!std::is_convertible_v<BlockId, std::uint32_t>);
static_assert(!std::is_constructible_v<SeqId, BlockId>);
static_assert(!std::is_assignable_v<SeqId&, BlockId>);

TEST(Id, ComparesByItsNumber) {
  EXPECT_EQ(BlockId(3), BlockId(3));
  EXPECT_LT(BlockId(3), BlockId(4));
  EXPECT_EQ(SeqId(), SeqId(0));
}

TEST(Id, PrintsItsNumber) {
  std::ostringstream out;
  out << SeqId(12345678901234567u);
  EXPECT_EQ(out.str(), "12345678901234567");
}

TEST(Id, CanBeAKey) {
  const std::unordered_set<BlockId> held = {BlockId(1), BlockId(2), BlockId(1)};
  EXPECT_EQ(held.size(), 2u);
}

TEST(TokenIds, AreRowsOfTheLogits) {
  const std::vector<TokenId> ids = {0, 7, 3};
  EXPECT_TRUE(all_below(ids, 8));
  EXPECT_FALSE(all_below(ids, 7));
  EXPECT_FALSE(all_below(std::vector<TokenId>{0, -1}, 8));
  EXPECT_TRUE(all_below({}, 0));
}

}  // namespace
}  // namespace quire
