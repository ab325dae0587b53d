#include "api/services/slo_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace quire::api::requests::slo_hints_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Result<SloHints> read(std::vector<http::Field> headers) { return slo_hints_of(headers, RequestLimits{}); }

TEST(SloHints, WithoutHeadersThereAreNone) {
  const SloHints none = *read({});
  EXPECT_FALSE(none.timeout || none.first_token || none.token_time || none.priority || none.sheddable);
  EXPECT_EQ(none.fairness_id, "");
}

TEST(SloHints, TimesAreDecimalNumbersOfTheirUnit) {
  const std::pair<const char*, Duration> seconds[] = {
      {"0.001", 1ms},      {"0.0010", 1ms},         {"1", 1s},
      {"00012", 12s},      {"2.5", 2500ms},         {"0.25", 250ms},
      {"3600", 3600s},     {"3599.999", 3599999ms}, {"3600.0000000000", 3600s},
      {"1.0000000001", 1s}};
  for (const auto& [text, expected] : seconds) EXPECT_EQ(read({{kTimeoutHeader, text}})->timeout, expected) << text;
  EXPECT_EQ(read({{kFirstTokenHeader, "250"}})->first_token, 250ms);
  EXPECT_EQ(read({{kFirstTokenHeader, "3600000"}})->first_token, 3600s);
  EXPECT_EQ(read({{kTokenTimeHeader, "0.001"}})->token_time, 1us);
  EXPECT_EQ(read({{kTokenTimeHeader, "12.5"}})->token_time, 12500us);
}

TEST(SloHints, WhatIsNoSuchNumberOrOutOfRangeIsRefusedByTheHeadersName) {
  const std::string digits(5000, '9');
  for (const std::string& text : {std::string(),
                                  std::string("0"),
                                  std::string("0.0"),
                                  std::string("0.0009"),
                                  std::string("3600.001"),
                                  std::string("3601"),
                                  std::string("-1"),
                                  std::string("+1"),
                                  std::string("1e3"),
                                  std::string("nan"),
                                  std::string("inf"),
                                  std::string("0x10"),
                                  std::string("1."),
                                  std::string(".5"),
                                  std::string("."),
                                  std::string("1.2.3"),
                                  std::string("1,5"),
                                  std::string("1 s"),
                                  std::string("1s"),
                                  std::string("\xd9\xa1"),
                                  std::string("1\0", 2),
                                  digits,
                                  "0." + std::string(5000, '0')}) {
    const auto refused = read({{kTimeoutHeader, text}});
    ASSERT_FALSE(refused) << text.substr(0, 40);
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_EQ(refused.error().param, kTimeoutHeader);
    EXPECT_THAT(refused.error().message, HasSubstr("0.001 to 3600"));
  }
  for (const char* name : {kFirstTokenHeader, kTokenTimeHeader}) {
    for (const char* text : {"0", "0.0009", "3600000.001", "3600001", "-5", "fast"}) {
      const auto refused = read({{name, text}});
      ASSERT_FALSE(refused) << text;
      EXPECT_EQ(refused.error().param, name);
    }
  }
}

TEST(SloHints, AHeaderThatIsGivenTwiceIsRefused) {
  for (const http::Header& one : slo_hint_headers()) {
    const char* const name = one.name;
    const auto refused = read({{name, "1"}, {name, "1"}});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().param, name);
  }
}

TEST(SloHints, AnObjectiveIsAPriorityAsTheGatewayCounts) {
  struct Row {
    const char* text;
    std::optional<std::int32_t> priority;
    bool sheddable;
  };
  const Row rows[] = {{"sheddable", 1, true},
                      {"standard", 0, false},
                      {"critical", -1, false},
                      {"7", -7, false},
                      {"-3", 3, true},
                      {"0", 0, false},
                      {"2147483647", -2147483647, false},
                      {"-2147483648", 2147483647, true},
                      {"2147483648", std::nullopt, false},
                      {"food-review", std::nullopt, false},
                      {"", std::nullopt, false}};
  for (const char* name : {kObjectiveHeader, "x-llm-d-inference-objective"}) {
    for (const Row& row : rows) {
      const SloHints slo_hints = *read({{name, row.text}});
      EXPECT_EQ(slo_hints.priority, row.priority) << row.text;
      EXPECT_EQ(slo_hints.sheddable, row.sheddable) << row.text;
    }
  }
}

TEST(SloHints, LabelsAreOf128Bytes) {
  for (const char* name :
       {kObjectiveHeader, "x-gateway-inference-fairness-id", "x-session-id", "x-session-token", "x-session-affinity"}) {
    for (const std::size_t n : {127u, 128u}) EXPECT_TRUE(read({{name, std::string(n, 'a')}})) << name;
    const auto refused = read({{name, std::string(129, 'a')}});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().param, name);
  }
}

TEST(SloHints, WhatDistinguishesRequestsIsLoggedFitForALine) {
  const std::vector<http::Field> headers = {{kTimeoutHeader, "5"},
                                            {kObjectiveHeader, "sheddable"},
                                            {"x-gateway-inference-fairness-id", "team\r\nevil"},
                                            {"x-session-id", "s-1"}};
  const std::string labels = labels_of(headers);
  EXPECT_THAT(labels, HasSubstr("objective=sheddable"));
  EXPECT_THAT(labels, HasSubstr("session_id=s-1"));
  EXPECT_EQ(labels.find_first_of("\r\n "), std::string::npos);
  EXPECT_EQ(labels_of(std::vector<http::Field>{{kTimeoutHeader, "5"}}), "");
}

TEST(SloHints, FairnessIdsAreFewTenantsAndNeverThoseOfKeys) {
  EXPECT_EQ(tenant_of(""), 0u);
  EXPECT_EQ(tenant_of("a"), tenant_of("a"));
  std::set<std::uint32_t> tenants;
  for (int i = 0; i < 20000; ++i) tenants.insert(tenant_of("id-" + std::to_string(i)));
  EXPECT_LE(tenants.size(), 4096u);
  EXPECT_GT(tenants.size(), 3500u);
  EXPECT_GE(*tenants.begin(), 1u << 20);
}

}  // namespace
}  // namespace quire::api::requests::slo_hints_test
