#include <gtest/gtest.h>

#include <string>

#include "api/completions/completion_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::speculative_field_test {
namespace {

class SpeculativeFieldTest : public ::testing::Test {
 protected:
  SpeculativeFieldTest() { services_.speculative_methods = {"ngram", "suffix"}; }

  Result<CompletionRequest> with(const std::string& value) const {
    return parse_completion_request(R"({"prompt":"p","speculative":)" + value + "}", services_);
  }
  flow::Speculation accepted(const std::string& value) const {
    Result<CompletionRequest> parsed = with(value);
    EXPECT_TRUE(parsed.ok()) << value << ": " << (parsed.ok() ? "" : parsed.error().message);
    return parsed.ok() ? parsed->speculation : flow::Speculation{};
  }
  std::string refused(const std::string& value, const std::string& param) const {
    const Result<CompletionRequest> parsed = with(value);
    EXPECT_FALSE(parsed.ok()) << value;
    if (parsed.ok()) return "";
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << value;
    EXPECT_EQ(parsed.error().param, param) << value;
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
    EXPECT_LT(parsed.error().message.size(), 400u);
    return parsed.error().message;
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(SpeculativeFieldTest, NothingTrueAndAnEmptyObjectAreTheServersOwn) {
  for (const char* value : {"null", "true", "{}", R"({"method":null,"num_speculative_tokens":null})"}) {
    const flow::Speculation speculation = accepted(value);
    EXPECT_TRUE(speculation.enabled) << value;
    EXPECT_EQ(speculation.max_nodes, 0u) << value;
    EXPECT_EQ(speculation.drafter, 0u) << value;
  }
}

TEST_F(SpeculativeFieldTest, IsSwitchedOffInThreeWays) {
  for (const char* value :
       {"false", R"({"method":"none"})", R"({"num_speculative_tokens":0})",
        R"({"method":"ngram","num_speculative_tokens":0})", R"({"method":"none","num_speculative_tokens":4})"}) {
    EXPECT_FALSE(accepted(value).enabled) << value;
  }
}

TEST_F(SpeculativeFieldTest, TakesTheMethodsThatTheServerHas) {
  EXPECT_EQ(accepted(R"({"method":"ngram"})").drafter, 0u);
  EXPECT_EQ(accepted(R"({"method":"suffix"})").drafter, 1u);
  EXPECT_TRUE(accepted(R"({"method":"suffix"})").enabled);
  EXPECT_EQ(refused(R"({"method":"eagle3"})", "speculative.method"),
            R"(speculative.method must be "none" or "ngram" or "suffix": this server has no other method)");
  for (const char* value : {R"({"method":3})", R"({"method":""})", R"({"method":"Ngram"})", R"({"method":true})"}) {
    refused(value, "speculative.method");
  }
}

TEST_F(SpeculativeFieldTest, AServerWithoutADrafterTakesSettingsThatChangeNothing) {
  services_.speculative_methods.clear();
  accepted("true");
  accepted("false");
  accepted(R"({"method":"none","num_speculative_tokens":4})");
  accepted(R"({"num_speculative_tokens":4})");
  EXPECT_EQ(refused(R"({"method":"ngram"})", "speculative.method"),
            R"(speculative.method must be "none": this server has no speculative decoding)");
}

TEST_F(SpeculativeFieldTest, ADraftHasNoneTo64Tokens) {
  const auto of = [](const std::string& number) { return R"({"num_speculative_tokens":)" + number + "}"; };
  for (const std::uint32_t number : {1u, 63u, 64u}) {
    EXPECT_EQ(accepted(of(std::to_string(number))).max_nodes, number);
    EXPECT_TRUE(accepted(of(std::to_string(number))).enabled);
  }
  for (const char* number : {"-1", "65", "1.5", "\"4\"", "true", "18446744073709551615", "[]"}) {
    refused(of(number), "speculative.num_speculative_tokens");
  }
}

TEST_F(SpeculativeFieldTest, ChoosesHowDraftTokensAreAccepted) {
  const auto rule_of = [this](const std::string& value) { return with(value)->accept; };
  EXPECT_EQ(rule_of("{}"), std::nullopt);
  EXPECT_EQ(rule_of("true"), std::nullopt);
  EXPECT_EQ(rule_of(R"({"accept":null})"), std::nullopt);
  EXPECT_EQ(rule_of(R"({"accept":"match"})"), sample::Accept::kMatch);
  EXPECT_EQ(rule_of(R"({"accept":"ratio"})"), sample::Accept::kRatio);
  EXPECT_EQ(rule_of(R"({"accept":"block","method":"suffix"})"), sample::Accept::kBlock);
  for (const char* value : {R"({"accept":"typical"})", R"({"accept":""})", R"({"accept":1})", R"({"accept":true})"}) {
    EXPECT_EQ(refused(value, "speculative.accept"), R"(speculative.accept must be "match", "ratio" or "block")");
  }
  refused(R"({"accept":"ratio","accept":"ratio"})", "speculative.accept");
}

TEST_F(SpeculativeFieldTest, RulesByRejectionNeedDraftTokensAndDraftsOfAFixedSize) {
  services_.adaptive_drafts = true;
  EXPECT_EQ(with(R"({"accept":"match"})")->accept, sample::Accept::kMatch);
  for (const char* value : {R"({"accept":"ratio"})", R"({"accept":"block"})"}) {
    EXPECT_NE(refused(value, "speculative.accept").find("adaptive (--speculative-config)"), std::string::npos);
  }
  services_.adaptive_drafts = false;
  services_.speculative_methods.clear();
  EXPECT_EQ(with(R"({"accept":"match"})")->accept, sample::Accept::kMatch);
  EXPECT_EQ(refused(R"({"accept":"ratio"})", "speculative.accept"),
            R"(speculative.accept must be "match": this server has no speculative decoding)");
}

TEST_F(SpeculativeFieldTest, RefusesWhatItDoesNotKnow) {
  refused(R"({"topk":4})", "speculative.topk");
  refused(R"({"method":"ngram","method":"ngram"})", "speculative.method");
  refused(R"({"num_speculative_tokens":1,"num_speculative_tokens":1})", "speculative.num_speculative_tokens");
  for (const char* value : {"1", "0", "\"ngram\"", "[]", "[true]", "1.5"}) refused(value, "speculative");
}

}  // namespace
}  // namespace quire::api::speculative_field_test
