#include "api/completions/render_completion.h"

#include "tests/api/generation/completion_rig.h"
#include "tests/api/wire/patient_calls.h"

namespace quire::api::test {
namespace {

class RenderCompletion : public CompletionRig {
 protected:
  json::value rendered(const std::string& body, int status = 200) {
    const http::Response response = render_completion(services_, body);
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body);
  }
};

TEST_F(RenderCompletion, ReportsTheIdsThatTheEngineWouldGet) {
  for (const char* body :
       {R"({"prompt":"Once upon"})", R"({"prompt":["a","b"],"n":2})", R"({"prompt":[3,4]})",
        R"({"prompt":[[3],[4,5]]})", R"({"prompt":[[3,4,5],[6,7,8]],"truncate_prompt_tokens":2,"best_of":3})",
        R"({"prompt":"x","use_beam_search":true,"n":2})"}) {
    submissions_.clear();
    const json::value reported = rendered(body);
    const auto completion = start(body);
    const std::size_t copies = submissions_.size() / reported.as_array().size();
    for (std::size_t i = 0; i < reported.as_array().size(); ++i) {
      const flow::Request& runs = submissions_[i * copies].request;
      EXPECT_EQ(json::value_to<std::vector<TokenId>>(reported.at(i).at("token_ids")), runs.prompt) << body;
      EXPECT_EQ(reported.at(i).at("count").to_number<std::size_t>(), runs.prompt.size());
      EXPECT_EQ(reported.at(i).at("sampling_params").at("max_tokens"), runs.max_tokens);
    }
  }
}

TEST_F(RenderCompletion, TakesNoPlaceInTheLine) {
  rendered(R"({"prompt":"Once upon"})");
  EXPECT_EQ(world_.queue.waiting_sequences(), 0u);
}

TEST_F(RenderCompletion, RefusesAsTheCompletionDoes) {
  for (const char* body : {"{}", R"({"prompt":1})", R"({"prompt":[]})", R"({"prompt":"x","max_tokens":-1})",
                           R"({"prompt":"x","min_tokens":17})", R"({"prompt":"x","max_tokens":1000000})"}) {
    EXPECT_EQ(rendered(body, 400).at("error"), refusal(body, 400)) << body;
  }
  EXPECT_EQ(rendered(R"({"prompt":"x","model":"other"})", 404).at("error"),
            refusal(R"({"prompt":"x","model":"other"})", 404));
}

}  // namespace
}  // namespace quire::api::test
