#include "core/base/result.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

namespace quire {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid("n", "n is " + std::to_string(n) + "; give an even one");
  return n / 2;
}

TEST(Result, HoldsTheValueOfAYes) {
  const Result<int> result = half(8);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 4);
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, HoldsTheErrorOfANo) {
  const Result<int> result = half(7);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  EXPECT_EQ(result.error().param, "n");
  EXPECT_EQ(result.error().message, "n is 7; give an even one");
  EXPECT_EQ(result.error().retry_after_s, 0);
}

TEST(Result, GivesAMoveOnlyValueAway) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, LetsTheValueBeChangedInPlace) {
  Result<std::string> result(std::string("a"));
  result->push_back('b');
  *result += 'c';
  EXPECT_EQ(*result, "abc");
}

TEST(Result, KeepsAnErrorApartFromAnErrorAsValue) {
  // The two states are told apart by position, not by type.
  const Result<std::string> value(std::string("text"));
  const Result<std::string> error(Error{Code::kInternal, "text", "", 0});
  EXPECT_TRUE(value.ok());
  EXPECT_FALSE(error.ok());
}

TEST(ResultDeathTest, ValueOfAnErrorIsOurBugAndSaysTheMessage) {
  const Result<int> result = half(7);
  EXPECT_DEATH((void)result.value(), "n is 7; give an even one");
  EXPECT_DEATH((void)*result, "Result::value\\(\\) of an error");
}

TEST(ResultDeathTest, ErrorOfAValueIsOurBug) {
  const Result<int> result = half(8);
  EXPECT_DEATH((void)result.error(), "CHECK failed");
}

TEST(WholeRetry, IsRoundedUpAndStaysBetweenASecondAndAMinute) {
  EXPECT_EQ(whole_retry_s(-3.0), 1);
  EXPECT_EQ(whole_retry_s(0.0), 1);
  EXPECT_EQ(whole_retry_s(1.0), 1);
  EXPECT_EQ(whole_retry_s(1.001), 2);
  EXPECT_EQ(whole_retry_s(59.0), 59);
  EXPECT_EQ(whole_retry_s(59.1), 60);
  EXPECT_EQ(whole_retry_s(60.0), 60);
  EXPECT_EQ(whole_retry_s(1e300), 60);
  EXPECT_EQ(whole_retry_s(std::numeric_limits<double>::quiet_NaN()), 1);
}

}  // namespace
}  // namespace quire
