#include "core/base/check.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(Check, LetsWhatIsTruePass) {
  CHECK(1 + 1 == 2);
  CHECK_EQ(2, 2);
  CHECK_NE(1, 2);
  CHECK_LT(1, 2);
  CHECK_LE(2, 2);
  CHECK_GT(2, 1);
  CHECK_GE(2, 2);
}

TEST(Check, LooksAtEachSideOnce) {
  int looks = 0;
  CHECK_EQ(++looks, 1);
  EXPECT_EQ(looks, 1);
}

TEST(CheckDeathTest, PrintsWhereWhatAndBothValues) {
  const int held = 5;
  const int limit = 4;
  EXPECT_DEATH(CHECK_LE(held, limit), "check_test\\.cc:[0-9]+: CHECK failed: held <= limit: 5 vs 4");
  EXPECT_DEATH(CHECK(held < limit), "CHECK failed: held < limit");
}

}  // namespace
}  // namespace quire
