#include "api/wire/errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace quire::api::errors_test {
namespace {

struct Expected {
  Code code;
  int status;
  const char* type;
};

constexpr Expected kTable[] = {
    {Code::kInvalidArgument, 400, "invalid_request_error"},
    {Code::kUnauthorized, 401, "authentication_error"},
    {Code::kForbidden, 403, "permission_error"},
    {Code::kNotFound, 404, "not_found_error"},
    {Code::kMethodNotAllowed, 405, "invalid_request_error"},
    {Code::kTimeout, 408, "timeout_error"},
    {Code::kTooLarge, 413, "invalid_request_error"},
    {Code::kUnsupportedMedia, 415, "invalid_request_error"},
    {Code::kQueueFull, 429, "rate_limit_error"},
    {Code::kHeaderTooLarge, 431, "invalid_request_error"},
    {Code::kCancelled, 499, "cancelled_error"},
    {Code::kInternal, 500, "server_error"},
    {Code::kUnavailable, 503, "unavailable_error"},
    {Code::kOutOfBlocks, 503, "unavailable_error"},
    {Code::kDeadline, 504, "timeout_error"},
};

TEST(Errors, EveryCodeHasItsStatusAndType) {
  for (const Expected& row : kTable) {
    EXPECT_EQ(status_of(row.code), row.status);
    const http::Response response = error_response(Error{row.code, "why", "field", 7});
    EXPECT_EQ(response.status, row.status);
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(response.body, std::string(R"({"error":{"message":"why","type":")") + row.type +
                                 R"(","param":"field","code":)" + std::to_string(row.status) + "}}");
  }
}

TEST(Errors, TheTableHereIsWhole) {
  EXPECT_EQ(std::size(kTable), static_cast<std::size_t>(Code::kInternal) + 1) << "a Code was added: give it a row here";
}

TEST(Errors, OnlyWhatMayPassSaysWhenToTryAgain) {
  for (const Expected& row : kTable) {
    const http::Response response = error_response(Error{row.code, "why", "", 7});
    const bool says = std::any_of(response.fields.begin(), response.fields.end(), [](const http::Field& field) {
      return field.name == "Retry-After" && field.value == "7";
    });
    EXPECT_EQ(says, row.status == 429 || row.status == 503) << row.status;
  }
  EXPECT_EQ(error_response(Error{Code::kQueueFull, "why", "", 0}).fields.front().value, "1");
}

TEST(Errors, AWordThatSaysMoreStandsForTheStatus) {
  const Error error{.code = Code::kUnauthorized, .message = "why", .param = "", .reason = "invalid_api_key"};
  EXPECT_EQ(error_json(error), R"({"error":{"message":"why","type":"authentication_error","param":null,)"
                               R"("code":"invalid_api_key"}})");
}

TEST(Errors, OnlyAMissingKeyIsAskedForOne) {
  for (const Expected& row : kTable) {
    const http::Response response = error_response(Error{row.code, "why", "", 7});
    const bool asks = std::any_of(response.fields.begin(), response.fields.end(), [](const http::Field& field) {
      return field.name == "WWW-Authenticate" && field.value == "Bearer";
    });
    EXPECT_EQ(asks, row.status == 401) << row.status;
  }
}

TEST(Errors, HaveAnthropicsShapeAndTypesWhereTheyAreAskedFor) {
  const std::pair<Code, const char*> cases[] = {
      {Code::kInvalidArgument, "invalid_request_error"},
      {Code::kUnauthorized, "authentication_error"},
      {Code::kForbidden, "permission_error"},
      {Code::kNotFound, "not_found_error"},
      {Code::kTooLarge, "request_too_large"},
      {Code::kQueueFull, "rate_limit_error"},
      {Code::kInternal, "api_error"},
      {Code::kUnavailable, "overloaded_error"},
      {Code::kOutOfBlocks, "overloaded_error"},
      {Code::kDeadline, "timeout_error"},
  };
  for (const auto& [code, type] : cases) {
    const http::Response response = error_response(Error{code, "why", "field", 7}, ErrorShape::kAnthropic);
    EXPECT_EQ(response.status, status_of(code));
    EXPECT_EQ(response.body, std::string(R"({"type":"error","error":{"message":"why","type":")") + type +
                                 R"(","param":"field","code":)" + std::to_string(status_of(code)) + "}}");
  }
}

TEST(Errors, NoParamIsNull) {
  EXPECT_EQ(error_json(Error{Code::kInternal, "a \"b\"\n", "", 0}),
            R"({"error":{"message":"a \"b\"\n","type":"server_error","param":null,"code":500}})");
}

TEST(Errors, EveryFaultOfFramingHasItsStatus) {
  using http::Fault;
  EXPECT_EQ(status_of(Fault::kMalformed), 400);
  EXPECT_EQ(status_of(Fault::kTooSlow), 408);
  EXPECT_EQ(status_of(Fault::kBodyTooLarge), 413);
  EXPECT_EQ(status_of(Fault::kUnknownExpectation), 417);
  EXPECT_EQ(status_of(Fault::kHeadTooLarge), 431);
  EXPECT_EQ(status_of(Fault::kUnsupportedVersion), 505);
  const http::Response response = error_response(http::Refusal{Fault::kUnknownExpectation, "how long?"});
  EXPECT_EQ(response.body,
            R"({"error":{"message":"how long?","type":"invalid_request_error","param":null,"code":417}})");
}

}  // namespace
}  // namespace quire::api::errors_test
