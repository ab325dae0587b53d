// Log probabilities of a response: of which tokens they are told, whole and in pieces.
#include <gmock/gmock.h>

#include "api/responses/message_tokens.h"
#include "api/responses/responses_formatter.h"
#include "tests/api/chat/answer_rig.h"

namespace quire::api::responses::test {
namespace {

namespace json = boost::json;
using chat::test::named_events_of;
using flow::Finish;
using ::testing::HasSubstr;
using ::testing::Not;

class ResponsesLogprobs : public chat::test::AnswerRig {
 protected:
  std::unique_ptr<Generation> open(http::Request request) override { return respond(services_, std::move(request)); }
  static std::string body(const std::string& members = "") {
    return R"({"input":"hi","seed":7,"include":["message.output_text.logprobs"],)"
           R"("tools":[{"type":"function","name":"now"},{"type":"function","name":"get"}])" +
           (members.empty() ? "" : "," + members) + "}";
  }
  // What the tokens of log probabilities say, put together.
  static std::string spelled(const json::value& logprobs) {
    std::string text;
    for (const json::value& token : logprobs.as_array()) {
      for (const json::value& byte : token.at("bytes").as_array()) text += static_cast<char>(byte.as_int64());
    }
    return text;
  }
  // [texts of the messages][what their log probabilities spell]
  static std::pair<std::string, std::string> messages_of(const json::value& output) {
    std::pair<std::string, std::string> both;
    for (const json::value& item : output.as_array()) {
      if (item.at("type") != "message") continue;
      const json::value& part = item.at("content").at(0);
      both.first += part.at("text").as_string();
      both.second += spelled(part.at("logprobs"));
    }
    return both;
  }
};

TEST_F(ResponsesLogprobs, ArePartOfATextOnlyWhereTheyAreAskedFor) {
  const json::value asked = answered(body(), "Hello there.");
  EXPECT_EQ(asked.at("output").at(0).at("content").at(0).at("logprobs").as_array().size(),
            services_.tokenizer->encode("Hello there.", false).size());
  const json::value plain = answered(R"({"input":"hi","top_logprobs":3})", "Hello there.");
  EXPECT_FALSE(plain.at("output").at(0).at("content").at(0).as_object().contains("logprobs"));
  EXPECT_EQ(plain.at("top_logprobs"), 3);
}

TEST_F(ResponsesLogprobs, HaveSoManyLikeliestAsWereAskedFor) {
  for (const std::size_t num_top : {0u, 1u, 3u}) {
    submissions_.clear();
    auto response = start(body("\"top_logprobs\":" + std::to_string(num_top)));
    EXPECT_EQ(submissions_[0].request.sampling.num_top, num_top);
    std::vector<flow::Candidate> top;
    for (std::size_t i = 0; i < num_top; ++i) top.push_back({static_cast<TokenId>(300 + i), -2.0f});
    submissions_[0].stream->push({TokenId{300}, Finish::kLength, -1.5f}, top);
    const json::value answer = whole(*response);
    EXPECT_EQ(answer.at("top_logprobs"), num_top);
    const json::value& reported = answer.at("output").at(0).at("content").at(0).at("logprobs").at(0);
    EXPECT_EQ(reported.at("logprob"), -1.5);
    EXPECT_EQ(reported.at("top_logprobs").as_array().size(), num_top);
    for (const json::value& one : reported.at("top_logprobs").as_array())
      EXPECT_EQ(one.at("logprob").to_number<double>(), -2.0);
  }
}

TEST_F(ResponsesLogprobs, AreOfTheMessageAndNotOfReasoningCallsMarksOrTheEnd) {
  const std::string call = R"(<tool_call>{"name": "get", "arguments": {"zebra": "quux"}}</tool_call>)";
  for (const Finish finish : {Finish::kLength, Finish::kStop}) {
    const json::value answer =
        answered(body(), "<think>maybe zebra quux</think>\n\nHello there my friend" + call + "!", finish);
    const auto [text, spelled] = messages_of(answer.at("output"));
    EXPECT_THAT(text, HasSubstr("Hello there my friend"));
    EXPECT_THAT(spelled, HasSubstr("Hello there my friend"));
    EXPECT_THAT(spelled, Not(HasSubstr("zebra")));
    EXPECT_THAT(spelled, Not(HasSubstr("quux")));
    EXPECT_THAT(spelled, Not(HasSubstr("think")));
  }
}

TEST_F(ResponsesLogprobs, SpellThePlainTextExactly) {
  for (const std::string& text :
       {std::string("Hello there."), std::string("漢字 and 😀😀, and é"), std::string("a < b << c")}) {
    const auto [reported, spelled] = messages_of(answered(body(), text).at("output"));
    EXPECT_EQ(reported, text);
    EXPECT_EQ(spelled, text);
  }
}

TEST_F(ResponsesLogprobs, AreTheSameStreamedWhereverTheyAreCut) {
  for (const std::string& text : chat::test::said_texts()) {
    const json::value answer = answered(body(), text, Finish::kLength);
    for (const std::size_t per_slice : {1u, 2u, 7u, 40u}) {
      auto response = start(body(R"("stream":true)"));
      json::array sum;
      json::array done;
      json::value last;
      for (const json::value& event : named_events_of(say_all(*response, text, Finish::kLength, per_slice))) {
        const auto append = [&event](json::array& to) {
          for (const json::value& one : event.at("logprobs").as_array()) to.push_back(one);
        };
        if (event.at("type") == "response.output_text.delta") append(sum);
        if (event.at("type") == "response.output_text.done") append(done);
        last = event;
      }
      EXPECT_EQ(sum, done) << text << per_slice;
      json::array whole;
      for (const json::value& item : answer.at("output").as_array()) {
        if (item.at("type") != "message") continue;
        for (const json::value& one : item.at("content").at(0).at("logprobs").as_array()) whole.push_back(one);
      }
      EXPECT_EQ(sum, whole) << text << per_slice;
      EXPECT_EQ(last.at("response").at("output"), answer.at("output")) << text << per_slice;
    }
  }
}

TEST_F(ResponsesLogprobs, AStreamsEndCountsAtItsFullLength) {
  auto response = start(body(R"("stream":true)"));
  for (int i = 0; i < 60; ++i) say(0, 300 + i);
  const std::size_t middle = response->take().size;
  response->events();
  say(0, 300, Finish::kLength);
  EXPECT_GE(response->take().size, 4 * 61u) << "all is told four times more";
  EXPECT_LT(middle, 4 * 61u);
}

}  // namespace
}  // namespace quire::api::responses::test
