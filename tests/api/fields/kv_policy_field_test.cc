#include <gtest/gtest.h>

#include <string>

#include "api/completions/completion_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::kv_policy_field_test {
namespace {

using Kind = flow::KvPolicy::Kind;

class KvPolicyFieldTest : public ::testing::Test {
 protected:
  KvPolicyFieldTest() { services_.max_model_len = 1024; }

  Result<CompletionRequest> with(const std::string& field) const {
    return parse_completion_request(R"({"prompt":"p",)" + field + "}", services_);
  }
  CompletionRequest accepted(const std::string& field) const {
    Result<CompletionRequest> parsed = with(field);
    EXPECT_TRUE(parsed.ok()) << field << ": " << parsed.error().message;
    return parsed.ok() ? std::move(*parsed) : CompletionRequest{};
  }
  void refused(const std::string& field, const std::string& param) const {
    const Result<CompletionRequest> parsed = with(field);
    ASSERT_FALSE(parsed.ok()) << field;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << field;
    EXPECT_EQ(parsed.error().param, param) << field;
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
    EXPECT_LT(parsed.error().message.size(), 400u);
  }
  static std::string window(const std::string& sinks, const std::string& positions) {
    return R"("kv_policy":{"type":"sink_window","sinks":)" + sinks + R"(,"window":)" + positions + "}";
  }
  static std::string hitters(const std::string& sinks, const std::string& positions, const std::string& budget) {
    return R"("kv_policy":{"type":"heavy_hitters","sinks":)" + sinks + R"(,"window":)" + positions + R"(,"budget":)" +
           budget + "}";
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(KvPolicyFieldTest, NothingIsTheDefault) {
  const CompletionRequest request = accepted(R"("seed":1)");
  EXPECT_TRUE(request.cache_salt.empty());
  EXPECT_FALSE(request.priority);
  EXPECT_FALSE(request.deadline_ms);
  EXPECT_EQ(request.kv_policy.kind, Kind::kFull);
}

TEST_F(KvPolicyFieldTest, ReadsWhatIsGiven) {
  const CompletionRequest request = accepted(R"("cache_salt":"s\u0000é","priority":-7,"deadline_ms":250)");
  EXPECT_EQ(request.cache_salt, std::string("s\0é", 4));
  EXPECT_EQ(request.priority, -7);
  EXPECT_EQ(request.deadline_ms, 250u);
}

TEST_F(KvPolicyFieldTest, ASaltHasOneTo128Bytes) {
  refused(R"("cache_salt":"")", "cache_salt");
  accepted(R"("cache_salt":"x")");
  for (const std::size_t bytes : {127, 128}) accepted(R"("cache_salt":")" + std::string(bytes, 'x') + '"');
  refused(R"("cache_salt":")" + std::string(129, 'x') + '"', "cache_salt");
}

TEST_F(KvPolicyFieldTest, ReadsAWindowWithSinks) {
  const flow::KvPolicy policy = accepted(window("32", "512")).kv_policy;
  EXPECT_EQ(policy.kind, Kind::kSinkWindow);
  EXPECT_EQ(policy.sinks, 32u);
  EXPECT_EQ(policy.window, 512u);
  EXPECT_EQ(policy.budget, 0u);
}

TEST_F(KvPolicyFieldTest, ReadsHeavyHitters) {
  const flow::KvPolicy policy =
      accepted(R"("kv_policy":{"budget":48,"window":256,"type":"heavy_hitters","sinks":16})").kv_policy;
  EXPECT_EQ(policy.kind, Kind::kHeavyHitters);
  EXPECT_EQ(policy.sinks, 16u);
  EXPECT_EQ(policy.window, 256u);
  EXPECT_EQ(policy.budget, 48u);
}

TEST_F(KvPolicyFieldTest, HoldsPolicyNumbersToTheirRanges) {
  for (const char* sinks : {"15", "17", "0", "-16", "31", "1040", "16.5", "\"16\"", "null", "9223372036854775808"}) {
    refused(window(sinks, "256"), "kv_policy.sinks");
  }
  for (const char* positions : {"255", "257", "0", "-256", "511", "1280", "256.5", "true", "null"}) {
    refused(window("16", positions), "kv_policy.window");
  }
  for (const char* budget : {"15", "17", "0", "-16", "1040", "1e2", "[]", "null"}) {
    refused(hitters("16", "256", budget), "kv_policy.budget");
  }
  accepted(window("16", "256"));
  accepted(hitters("16", "256", "16"));
}

TEST_F(KvPolicyFieldTest, APolicyKeepsNoMoreThanTheModelTakes) {
  services_.max_model_len = 527;
  accepted(window("256", "256"));
  refused(window("272", "256"), "kv_policy");
  services_.max_model_len = 528;
  accepted(window("272", "256"));
  refused(window("288", "256"), "kv_policy");
  accepted(hitters("16", "256", "256"));
  refused(hitters("16", "256", "272"), "kv_policy");
  services_.max_model_len = 529;
  accepted(window("272", "256"));
}

TEST_F(KvPolicyFieldTest, APolicyIsWholeAndHasNothingElse) {
  refused(R"("kv_policy":{})", "kv_policy.type");
  refused(R"("kv_policy":{"sinks":16,"window":256})", "kv_policy.type");
  refused(R"("kv_policy":{"type":"sink_window","window":256})", "kv_policy.sinks");
  refused(R"("kv_policy":{"type":"sink_window","sinks":16})", "kv_policy.window");
  refused(R"("kv_policy":{"type":"heavy_hitters","sinks":16,"window":256})", "kv_policy.budget");
  refused(R"("kv_policy":{"type":"sink_window","sinks":16,"window":256,"budget":16})", "kv_policy.budget");
  refused(R"("kv_policy":{"type":"sink_window","sinks":16,"window":256,"surprise":1})", "kv_policy.surprise");
  refused(R"("kv_policy":{"type":"sink_window","sinks":16,"sinks":16,"window":256})", "kv_policy.sinks");
  for (const char* type : {"\"full\"", "\"\"", "1", "null", "[]"}) {
    refused(std::string(R"("kv_policy":{"sinks":16,"window":256,"type":)") + type + "}", "kv_policy.type");
  }
  for (const char* value : {"1", "true", "\"sink_window\"", "[]"}) {
    refused(std::string(R"("kv_policy":)") + value, "kv_policy");
  }
}

TEST_F(KvPolicyFieldTest, AModelWithAWindowOfItsOwnTakesNoPolicy) {
  services_.model_window = 1;
  refused(window("16", "256"), "kv_policy");
  accepted(R"("kv_policy":null)");
  services_.model_window = 0;
  accepted(window("16", "256"));
}

}  // namespace
}  // namespace quire::api::kv_policy_field_test
