#include "api/limits/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::api::keys {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSecret = "qk-0123456789abcdef";

class GateTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const Caller>> ask(const std::string& authorization, const std::string& api_key = {},
                                            bool repeated = false) {
    http::Request request;
    request.path = "/v1/models";
    request.authorization = authorization;
    request.api_key = api_key;
    request.credentials_repeated = repeated;
    return caller_of(request, table_);
  }

  const KeyTable table_{{{.name = "alice", .digest = digest_of(kSecret)}}, nullptr};
};

TEST_F(GateTest, TakesTheKeyAsClientsSendIt) {
  for (const std::string scheme : {"Bearer ", "bearer ", "BEARER   ", "Bearer \t"}) {
    ASSERT_TRUE(ask(scheme + kSecret)) << scheme;
    EXPECT_EQ((*ask(scheme + kSecret))->name, "alice");
  }
  EXPECT_EQ((*ask("", kSecret))->name, "alice") << "Anthropic's";
  EXPECT_EQ((*ask("Bearer " + kSecret, kSecret))->name, "alice") << "both, and the same";
}

TEST_F(GateTest, TakesNothingElse) {
  const std::string good = "Bearer " + kSecret;
  for (const std::string& wrong :
       {std::string(), std::string("Bearer"), std::string("Bearer "), kSecret, "Basic " + kSecret, "Bearer" + kSecret,
        good.substr(0, good.size() - 1), good + "0", good + " " + kSecret, "Bearer " + kSecret.substr(1),
        "Bearer " + std::string(10000, 'a'), "Bearer " + hex_of(digest_of(kSecret))}) {
    const auto refused = ask(wrong);
    ASSERT_FALSE(refused) << wrong.substr(0, 80);
    EXPECT_EQ(refused.error().code, Code::kUnauthorized);
    EXPECT_STREQ(refused.error().reason, "invalid_api_key");
    EXPECT_THAT(refused.error().message, Not(HasSubstr(kSecret.substr(3)))) << "no error repeats a key";
  }
  EXPECT_FALSE(ask("", kSecret + "0"));
  EXPECT_FALSE(ask("Bearer wrong", kSecret)) << "one of them is wrong";
  EXPECT_FALSE(ask(good, "wrong"));
  EXPECT_FALSE(ask("Basic abc", kSecret));
  EXPECT_FALSE(ask(good, "", /*repeated=*/true));
}

TEST_F(GateTest, AUserThatMonitorsReadsMetricsAndGivesNoOrders) {
  const auto status = [](bool monitors, const char* path) {
    const KeyTable table(std::vector<KeyEntry>{{.name = "a", .digest = digest_of(kSecret), .monitors = monitors}},
                         nullptr);
    http::Request request;
    request.path = path;
    request.authorization = "Bearer " + kSecret;
    return caller_of(request, table).ok();
  };
  EXPECT_TRUE(status(true, "/metrics"));
  EXPECT_FALSE(status(false, "/metrics"));
  EXPECT_TRUE(status(true, "/v1/models"));
  EXPECT_FALSE(status(true, "/admin/cache/save"));
}

TEST_F(GateTest, KnowsWhatIsOpenAndWhatIsTheAdministrators) {
  for (const char* path : {"/live", "/ready", "/startup", "/health"}) EXPECT_EQ(access_of(path), Access::kOpen) << path;
  EXPECT_EQ(access_of("/metrics"), Access::kMonitor);
  for (const char* path : {"/admin", "/admin/", "/admin/cache/save"})
    EXPECT_EQ(access_of(path), Access::kAdmin) << path;
  for (const char* path : {"", "/", "/live/", "/metrics/", "/administration", "/v1/models"}) {
    EXPECT_EQ(access_of(path), Access::kUser) << path;
  }
}

}  // namespace
}  // namespace quire::api::keys
