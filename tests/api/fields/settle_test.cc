#include "api/fields/settle.h"

#include <gtest/gtest.h>

#include <string>

#include "api/completions/completion_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::settle_test {
namespace {

class SettleTest : public ::testing::Test {
 protected:
  Result<CompletionRequest> with(const std::string& fields, std::size_t num_prompts = 1) const {
    std::string prompts = R"("p")";
    for (std::size_t i = 1; i < num_prompts; ++i) prompts += R"(,"p")";
    return parse_completion_request(R"({"prompt":[)" + prompts + "]," + fields + "}", services_);
  }
  CompletionRequest accepted(const std::string& fields, std::size_t num_prompts = 1) const {
    Result<CompletionRequest> parsed = with(fields, num_prompts);
    EXPECT_TRUE(parsed.ok()) << fields << ": " << parsed.error().message;
    return parsed.ok() ? std::move(*parsed) : CompletionRequest{};
  }
  void refused(const std::string& fields, const std::string& param, std::size_t num_prompts = 1) const {
    const Result<CompletionRequest> parsed = with(fields, num_prompts);
    ASSERT_FALSE(parsed.ok()) << fields;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << fields;
    EXPECT_EQ(parsed.error().param, param) << fields;
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(SettleTest, OneAnswerIsTheDefault) {
  const CompletionRequest request = accepted(R"("seed":1)");
  EXPECT_EQ(request.n, 1u);
  EXPECT_EQ(request.best_of, 1u);
  EXPECT_FALSE(request.use_beam_search);
  EXPECT_EQ(request.length_penalty, 1.0);
  EXPECT_FALSE(request.sampling.logprob);
  EXPECT_EQ(request.sampling.num_top, 0u);
}

TEST_F(SettleTest, BestOfIsAtLeastN) {
  EXPECT_EQ(accepted(R"("n":4)").best_of, 4u);
  EXPECT_EQ(accepted(R"("n":4,"best_of":4)").best_of, 4u);
  EXPECT_EQ(accepted(R"("best_of":5,"n":4)").best_of, 5u);
  refused(R"("n":4,"best_of":3)", "best_of");
  refused(R"("best_of":1,"n":2)", "best_of");
}

TEST_F(SettleTest, OnlyAChoiceAmongMoreNeedsLogProbabilities) {
  EXPECT_FALSE(accepted(R"("n":4)").sampling.logprob);
  EXPECT_FALSE(accepted(R"("n":4,"best_of":4)").sampling.logprob);
  EXPECT_TRUE(accepted(R"("n":4,"best_of":5)").sampling.logprob);
}

TEST_F(SettleTest, ChoicesOfAllPromptsTogetherAreLimited) {
  EXPECT_EQ(accepted(R"("n":1)", 128).prompts.size(), 128u);
  accepted(R"("n":7)", 18);      // 126
  accepted(R"("n":32)", 4);      // 128
  refused(R"("n":43)", "n", 3);  // 129
  refused(R"("best_of":43)", "best_of", 3);
  refused(R"("best_of":43,"n":3)", "best_of", 3);
  refused(R"("n":128,"use_beam_search":true)", "n", 2);
  services_.limits.max_choices = 5;
  accepted(R"("n":4)");
  accepted(R"("n":5)");
  refused(R"("n":6)", "n");
}

TEST_F(SettleTest, AStreamCannotWaitForTheBest) {
  accepted(R"("n":4,"stream":true)");
  accepted(R"("n":4,"best_of":4,"stream":true)");
  refused(R"("n":4,"best_of":5,"stream":true)", "best_of");
  refused(R"("best_of":2,"stream":true)", "best_of");
}

TEST_F(SettleTest, ASearchIsGreedyAndSeesTwiceItsWidth) {
  const CompletionRequest request =
      accepted(R"("use_beam_search":true,"n":2,"best_of":5,"length_penalty":0.5,"seed":9)");
  EXPECT_TRUE(request.use_beam_search);
  EXPECT_EQ(request.n, 2u);
  EXPECT_EQ(request.best_of, 5u);
  EXPECT_EQ(request.length_penalty, 0.5);
  EXPECT_EQ(request.sampling.temperature, 0.0f) << "the model's own 0.8 has no say";
  EXPECT_EQ(request.sampling.top_p, 1.0f);
  EXPECT_FALSE(request.sampling.logprob);
}

TEST_F(SettleTest, LengthPenaltyHasARange) {
  const std::string search = R"("use_beam_search":true,"length_penalty":)";
  for (const char* good : {"-5", "-4.999999", "0", "1", "2.5", "4.999999", "5"}) accepted(search + good);
  for (const char* bad : {"-5.000001", "5.000001", "1e300", "\"1\"", "true", "[]"}) {
    refused(search + bad, "length_penalty");
  }
}

TEST_F(SettleTest, LengthPenaltyBelongsToASearch) {
  accepted(R"("length_penalty":1)");
  accepted(R"("length_penalty":1.0,"use_beam_search":false)");
  refused(R"("length_penalty":0.9)", "length_penalty");
  refused(R"("length_penalty":0,"use_beam_search":false)", "length_penalty");
}

TEST_F(SettleTest, ASearchIsNoWiderThanWhatRunsTogether) {
  services_.max_num_seqs = 8;
  accepted(R"("use_beam_search":true,"n":7)");
  accepted(R"("use_beam_search":true,"n":8)");
  refused(R"("use_beam_search":true,"n":9)", "n");
  refused(R"("use_beam_search":true,"best_of":9)", "best_of");
  accepted(R"("n":9)");
}

TEST_F(SettleTest, ASearchIsNoWiderThanTheCandidatesLeftBesideThoseThatEnd) {
  services_.max_num_seqs = 4096;
  services_.limits.max_choices = 1000;
  accepted(R"("use_beam_search":true,"n":254)");
  accepted(R"("use_beam_search":true,"n":255)");
  refused(R"("use_beam_search":true,"n":256)", "n");
  accepted(R"("use_beam_search":true,"n":256,"ignore_eos":true)");
  refused(R"("use_beam_search":true,"n":257,"ignore_eos":true)", "n");
}

TEST_F(SettleTest, ASearchRefusesWhatWouldBendItsRanking) {
  const std::string search = R"("use_beam_search":true,)";
  for (const char* good : {R"("temperature":0)", R"("temperature":1.0)", R"("top_p":1)", R"("top_k":0)",
                           R"("top_k":-1)", R"("min_p":0)", R"("seed":5)", R"("stop":[])", R"("ignore_eos":true)"}) {
    accepted(search + good);
  }
  refused(search + R"("temperature":0.8)", "temperature");
  refused(search + R"("temperature":1e-9)", "temperature");
  refused(search + R"("top_p":0.9)", "top_p");
  refused(search + R"("top_k":1)", "top_k");
  refused(search + R"("min_p":0.1)", "min_p");
  refused(search + R"("stop":"x")", "stop");
  refused(search + R"("stream":true)", "use_beam_search");
  refused(search + R"("kv_policy":{"type":"sink_window","sinks":16,"window":256})", "kv_policy");
}

}  // namespace
}  // namespace quire::api::settle_test
