#include "api/embeddings/embedding_formatter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/embeddings/vector.h"
#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;
using flow::Finish;

class EmbeddingFormTest : public test::CompletionRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override { return embed(services_, std::move(request)); }

  // What the engine does for submission i: `rows` rows of 1, 2, 3 … times `scale`.
  void pool(std::size_t i, float scale, int rows = 1) {
    bridge::PromptEmbedding& embedding = *submissions_[i].stream->embedding_to_write();
    std::vector<float> row(embedding.sums.size());
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = scale * static_cast<float>(k + 1);
    for (; rows > 0; --rows) embedding.add(row);
    submissions_[i].stream->push({-1, Finish::kScored});
  }
  static std::vector<TokenId> ids(std::size_t n) { return std::vector<TokenId>(n, 7); }
  static std::string body_of(const std::vector<TokenId>& ids) {
    return json::serialize(json::object{{"input", json::value_from(ids)}});
  }
};

TEST_F(EmbeddingFormTest, EveryInputIsASequenceThatIsPooledAndNothingElse) {
  auto embedding =
      start(R"({"input":["Once upon","The"],"pooling":"mean","cache_salt":"s","priority":3,"model":"stories"})");
  ASSERT_EQ(submissions_.size(), 2u);
  EXPECT_EQ(submissions_[0].request.prompt, services_.tokenizer->encode("Once upon", true));
  EXPECT_EQ(submissions_[1].request.prompt, services_.tokenizer->encode("The", true));
  for (const bridge::Submission& one : submissions_) {
    EXPECT_EQ(one.request.pooling, flow::Pooling::kMean);
    EXPECT_EQ(one.request.max_tokens, 0u);
    EXPECT_FALSE(one.request.scores_prompt);
    EXPECT_FALSE(one.request.rules || one.request.grammar || one.request.beam);
    EXPECT_EQ(one.request.priority, 3);
    EXPECT_TRUE(one.request.cache_namespace);
    EXPECT_EQ(one.stream->embedding_to_write()->sums.size(), 6u);
    EXPECT_EQ(one.stream->scores_to_write(), nullptr);
  }
  EXPECT_FALSE(embedding->streams());
}

TEST_F(EmbeddingFormTest, AnswersAListOfVectorsInTheOrderOfTheInputs) {
  auto embedding = start(R"({"input":[[7,8,9],[5]],"normalize":false,"dimensions":2,"request_id":"mine"})");
  pool(1, 0.5f);
  pool(0, 2.0f, 3);
  const json::value reported = whole(*embedding);
  EXPECT_EQ(reported.at("object"), "list");
  EXPECT_EQ(reported.at("id"), "embd-mine");
  EXPECT_EQ(reported.at("model"), "stories");
  EXPECT_EQ(reported.at("data"), json::parse(R"([{"object":"embedding","index":0,"embedding":[2,4]},)"
                                             R"({"object":"embedding","index":1,"embedding":[0.5,1]}])"));
  EXPECT_EQ(reported.at("usage").at("prompt_tokens"), 4);
  EXPECT_EQ(reported.at("usage").at("total_tokens"), 4);
  EXPECT_TRUE(reported.at("timings").is_object());
}

TEST_F(EmbeddingFormTest, NumbersAndBase64SayTheSame) {
  auto numbers = start(R"({"input":"a"})");
  auto base64 = start(R"({"input":"a","encoding_format":"base64"})");
  pool(0, 0.3f);
  pool(1, 0.3f);
  std::vector<float> vector;
  const json::value reported = whole(*numbers);
  for (const json::value& number : reported.at("data").at(0).at("embedding").as_array()) {
    vector.push_back(static_cast<float>(number.to_number<double>()));
  }
  ASSERT_EQ(vector.size(), 6u);
  EXPECT_EQ(whole(*base64).at("data").at(0).at("embedding"), json::value(base64_of(vector)));
}

TEST_F(EmbeddingFormTest, AnInputMayBeAsLongAsTheModelTakesAndOneTokenMoreIsRefused) {
  for (const std::size_t n : {511u, 512u}) {
    submissions_.clear();
    auto embedding = start(body_of(ids(n)));
    EXPECT_EQ(submissions_.at(0).request.prompt.size(), n);
  }
  const json::value error = refusal(body_of(ids(513)), 400);
  EXPECT_EQ(error.at("param"), "input");
  EXPECT_NE(std::string(error.at("message").as_string()).find("512"), std::string::npos);
}

TEST_F(EmbeddingFormTest, ALongInputCanBeCut) {
  std::string body = body_of(ids(600));
  body.pop_back();
  for (const auto& [keep, left] : {std::pair(-1, 512u), std::pair(5, 5u)}) {
    submissions_.clear();
    auto embedding = start(body + ",\"truncate_prompt_tokens\":" + std::to_string(keep) + "}");
    EXPECT_EQ(submissions_.at(0).request.prompt.size(), left);
  }
}

TEST_F(EmbeddingFormTest, AFaultOfOneInputIsTheRequests) {
  auto embedding = start(R"({"input":["a","b"]})");
  pool(0, 1.0f);
  submissions_[1].stream->push({-1, Finish::kFailed});
  test::take_events(*embedding);
  EXPECT_TRUE(embedding->finished() && embedding->failed());
  EXPECT_EQ(embedding->whole().status, 500);
}

TEST_F(EmbeddingFormTest, WarnsOfFieldsThatChangeNothing) {
  auto embedding = start(R"({"input":"a","colour":1})");
  bool warned = false;
  for (const http::Field& field : embedding->fields()) warned = warned || field.value == "unknown fields: colour";
  EXPECT_TRUE(warned);
}

TEST_F(EmbeddingFormTest, RefusesWhatItCannotRead) {
  EXPECT_EQ(refusal("{}", 400).at("param"), "input");
  EXPECT_EQ(refusal(R"({"input":"a","model":"none"})", 404).at("param"), "model");
  EXPECT_EQ(refusal(R"({"input":"a","dimensions":7})", 400).at("param"), "dimensions");
}

}  // namespace
}  // namespace quire::api::test
