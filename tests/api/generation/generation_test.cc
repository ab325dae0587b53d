#include "api/generation/generation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;
using test::events_of;
using test::text_of;

class GenerationTest : public test::CompletionRig {};

TEST_F(GenerationTest, SubmitsWhatWasAsked) {
  const auto completion = start(R"({"prompt":"Once upon","max_tokens":7,"temperature":0.5,"seed":11,"stop":"x"})");
  ASSERT_EQ(submissions_.size(), 1u);
  const flow::Request& request = submissions_[0].request;
  EXPECT_EQ(request.prompt, services_.tokenizer->encode("Once upon", true));
  EXPECT_EQ(request.max_tokens, 7u);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.seed, 11u);
  EXPECT_EQ(request.sampling.choice_index, 0u);
  EXPECT_EQ(request.stop_tokens, std::vector<TokenId>{0});
}

TEST_F(GenerationTest, WithoutGrammarsAFormOfTheAnswerIsRefused) {
  EXPECT_EQ(refusal(R"({"prompt":"a","guided_regex":"a+"})", 400).at("param"), "guided_regex");
}

TEST_F(GenerationTest, IgnoreEosLeavesNoStopTokens) {
  const auto completion = start(R"({"prompt":"a","ignore_eos":true})");
  EXPECT_TRUE(submissions_[0].request.stop_tokens.empty());
}

TEST_F(GenerationTest, MissingMaxTokensIsSixteenOrWhatRoomIsLeft) {
  const auto first = start(R"({"prompt":"a"})");
  EXPECT_EQ(submissions_[0].request.max_tokens, 16u);
  std::string ids = "[7";
  for (int i = 1; i < 505; ++i) ids += ",7";
  const auto second = start(R"({"prompt":)" + ids + "]}");
  EXPECT_EQ(submissions_[1].request.max_tokens, 7u);
}

TEST_F(GenerationTest, PromptAndAnswerMustFitTheModel) {
  std::string ids = "[7";
  for (int i = 1; i < 500; ++i) ids += ",7";
  ids += "]";
  for (const int max_tokens : {11, 12})
    start(R"({"prompt":)" + ids + R"(,"max_tokens":)" + std::to_string(max_tokens) + "}");
  const json::value error = refusal(R"({"prompt":)" + ids + R"(,"max_tokens":13})", 400);
  EXPECT_EQ(error.at("param"), "max_tokens");
  const std::string message(error.at("message").as_string());
  EXPECT_NE(message.find("500"), std::string::npos);
  EXPECT_NE(message.find("512"), std::string::npos);

  std::string text;
  for (int i = 0; i < 600; ++i) text += " scratch";
  EXPECT_EQ(refusal(R"({"prompt":")" + text + R"(","max_tokens":1})", 400).at("param"), "prompt");
}

TEST_F(GenerationTest, TakesAsManyTokenIdsAsLeaveRoomForOne) {
  const auto ids = [](std::size_t n) {
    std::string list = "[7";
    for (std::size_t i = 1; i < n; ++i) list += ",7";
    return R"({"prompt":)" + list + "]}";
  };
  for (const std::size_t n : {510, 511}) start(ids(n));
  for (const std::size_t n : {512, 513, 100000}) EXPECT_EQ(refusal(ids(n), 400).at("param"), "prompt");
}

TEST_F(GenerationTest, AnEmptyPromptBeginsWithTheFirstToken) {
  const auto completion = start(R"({"prompt":""})");
  EXPECT_EQ(submissions_[0].request.prompt, std::vector<TokenId>{0});
  services_.bos.reset();
  EXPECT_EQ(refusal(R"({"prompt":""})", 400).at("param"), "prompt");
}

TEST_F(GenerationTest, DrawsASeedAndReportsIt) {
  auto first = start(R"({"prompt":"a","max_tokens":1})");
  auto second = start(R"({"prompt":"a","max_tokens":1})");
  EXPECT_NE(submissions_[0].request.sampling.seed, submissions_[1].request.sampling.seed);
  say(0, 5, flow::Finish::kLength);
  const json::value body = whole(*first);
  EXPECT_EQ(body.at("seed").to_number<std::uint64_t>(), submissions_[0].request.sampling.seed);
  EXPECT_LT(body.at("seed").as_int64(), std::int64_t{1} << 53);
}

TEST_F(GenerationTest, ReportsTheWholeAnswer) {
  auto completion = start(R"({"model":"org/stories","prompt":"Once","max_tokens":50,"seed":3})");
  say_text(0, " upon a time, \"quoted\" 😀", flow::Finish::kNone);
  EXPECT_EQ(test::take_events(*completion), "");
  EXPECT_FALSE(completion->finished());
  say(0, 0, flow::Finish::kStop);
  const json::value body = whole(*completion);
  EXPECT_EQ(body.at("id"), "cmpl-r1");
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("model"), "org/stories");
  EXPECT_EQ(body.at("system_fingerprint"), "fp-test");
  EXPECT_EQ(body.at("seed"), 3);
  const json::value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), " upon a time, \"quoted\" 😀");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_TRUE(choice.at("stop_reason").is_null());
  EXPECT_TRUE(choice.at("logprobs").is_null());
  const auto tokens = services_.tokenizer->encode(" upon a time, \"quoted\" 😀", false).size();
  const json::value& usage = body.at("usage");
  EXPECT_EQ(usage.at("completion_tokens").to_number<std::size_t>(), tokens + 1)
      << "the stop token counts and adds no text";
  EXPECT_EQ(usage.at("prompt_tokens").to_number<std::size_t>(), services_.tokenizer->encode("Once", true).size());
  EXPECT_EQ(usage.at("total_tokens").as_int64(),
            usage.at("prompt_tokens").as_int64() + usage.at("completion_tokens").as_int64());
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), 0);
}

// Where tokens are a matter of drafts, too, the answer says so; nowhere else.
TEST_F(GenerationTest, ReportsWhereTokensAreTakenByRejection) {
  services_.speculative_methods = {"ngram"};
  services_.accept = sample::Accept::kRatio;
  const auto reported = [this](const std::string& more) {
    const std::size_t index = submissions_.size();
    auto completion = start(R"({"prompt":"Once","max_tokens":1)" + more + "}");
    const sample::Params& sampling = submissions_[index].request.sampling;
    say(index, 5, flow::Finish::kLength);
    const json::value body = whole(*completion);
    return std::pair(sample::accepts_by_rejection(sampling), std::string(body.at("system_fingerprint").as_string()));
  };
  EXPECT_EQ(reported(R"(,"temperature":1)"), std::pair(true, std::string("fp-test-ratio")));
  EXPECT_EQ(reported(R"(,"temperature":1,"speculative":{"accept":"block"})"),
            std::pair(true, std::string("fp-test-block")));
  for (const char* more : {R"(,"temperature":1,"speculative":{"accept":"match"})", R"(,"temperature":0)",
                           R"(,"temperature":1,"speculative":false)",
                           R"(,"temperature":1,"speculative":{"accept":"ratio","num_speculative_tokens":0})"}) {
    EXPECT_EQ(reported(more), std::pair(false, std::string("fp-test"))) << more;
  }
}

TEST_F(GenerationTest, CutsAtAStopStringAndCancels) {
  auto completion = start(R"({"prompt":"Once","max_tokens":50,"stop":["dragon","king"]})");
  say_text(0, " the old king and the dragon", flow::Finish::kNone);
  const json::value body = whole(*completion);
  EXPECT_EQ(body.at("choices").at(0).at("text"), " the old ");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
  EXPECT_EQ(body.at("choices").at(0).at("stop_reason"), "king");
  EXPECT_TRUE(submissions_[0].stream->cancelled());
  EXPECT_EQ(body.at("usage").at("completion_tokens").to_number<std::size_t>(),
            services_.tokenizer->encode(" the old king", false).size())
      << "what was generated past the stop is not counted";
}

TEST_F(GenerationTest, AStopStringInTheLastTokenIsAStop) {
  auto completion = start(R"({"prompt":"Once","max_tokens":3,"stop":"king"})");
  say_text(0, " old king", flow::Finish::kLength);
  const json::value body = whole(*completion);
  EXPECT_EQ(body.at("choices").at(0).at("text"), " old ");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
}

TEST_F(GenerationTest, HeldBackTextComesOutAtTheEnd) {
  auto completion = start(R"({"prompt":"Once","max_tokens":3,"stop":"kingdom"})");
  say_text(0, " old king", flow::Finish::kLength);
  const json::value body = whole(*completion);
  EXPECT_EQ(body.at("choices").at(0).at("text"), " old king");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
}

// However the engine's tokens fall into wake-ups, the stream says what the whole answer says.
TEST_F(GenerationTest, AStreamHasTheSameTextHoweverItIsSplit) {
  const std::string text = " was a king 😀 who had 漢字 and a dragon.";
  const std::vector<TokenId> ids = services_.tokenizer->encode(text, false);
  for (const char* stop : {"[]", R"(["dragon"])", R"(["字 a"])", R"(["zzz"])"}) {
    const std::string fields = std::string(R"("prompt":"There","seed":1,"max_tokens":60,"stop":)") + stop;
    submissions_.clear();
    auto plain = start("{" + fields + "}");
    for (const TokenId id : ids) say(0, id);
    say(0, 0, flow::Finish::kStop);
    const json::value expected = whole(*plain);
    for (std::size_t split = 1; split <= ids.size() + 1; ++split) {
      submissions_.clear();
      auto streamed = start("{" + fields + R"(,"stream":true,"stream_options":{"include_usage":true}})");
      std::string sent;
      for (std::size_t i = 0; i <= ids.size(); ++i) {
        say(0, i < ids.size() ? ids[i] : 0, i < ids.size() ? flow::Finish::kNone : flow::Finish::kStop);
        if ((i + 1) % split == 0) sent += test::take_events(*streamed);
        if (streamed->finished()) break;
      }
      sent += test::take_events(*streamed);
      EXPECT_TRUE(streamed->finished());
      EXPECT_EQ(test::take_events(*streamed), "");
      const std::vector<std::string> events = events_of(sent);
      EXPECT_EQ(events.back(), "[DONE]");
      EXPECT_EQ(text_of(events), expected.at("choices").at(0).at("text").as_string()) << split << stop;
      const json::value usage = json::parse(events[events.size() - 2]);
      EXPECT_TRUE(usage.at("choices").as_array().empty());
      EXPECT_EQ(usage.at("usage"), expected.at("usage")) << split << stop;
      const json::value last = json::parse(events[events.size() - 3]);
      EXPECT_EQ(last.at("choices").at(0).at("finish_reason"), expected.at("choices").at(0).at("finish_reason"));
      EXPECT_EQ(last.at("choices").at(0).at("stop_reason"), expected.at("choices").at(0).at("stop_reason"));
    }
  }
}

TEST_F(GenerationTest, PromptsOfAListAreAnsweredEachForItself) {
  auto completion = start(R"({"prompt":["one","two","three"],"max_tokens":9,"seed":4})");
  ASSERT_EQ(submissions_.size(), 3u);
  for (const bridge::Submission& submission : submissions_) {
    EXPECT_EQ(submission.request.sampling.seed, 4u);
    EXPECT_EQ(submission.request.sampling.choice_index, 0u);
  }
  say_text(2, " c", flow::Finish::kLength);
  say_text(0, " a", flow::Finish::kLength);
  EXPECT_EQ(test::take_events(*completion), "");
  EXPECT_FALSE(completion->finished());
  say(1, 0, flow::Finish::kStop);
  const json::value body = whole(*completion);
  const json::array& choices = body.at("choices").as_array();
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].at("text"), " a");
  EXPECT_EQ(choices[1].at("text"), "");
  EXPECT_EQ(choices[2].at("text"), " c");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(choices[i].at("index").to_number<std::size_t>(), i);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 3);
}

TEST_F(GenerationTest, AStreamInterleavesItsChoices) {
  auto completion = start(R"({"prompt":["one","two"],"max_tokens":9,"stream":true})");
  std::string sent;
  say_text(1, " b", flow::Finish::kNone);
  sent += test::take_events(*completion);
  say_text(0, " a", flow::Finish::kLength);
  say_text(1, " bb", flow::Finish::kLength);
  sent += test::take_events(*completion);
  const std::vector<std::string> events = events_of(sent);
  EXPECT_EQ(text_of(events, 0), " a");
  EXPECT_EQ(text_of(events, 1), " b bb");
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(sent.find("\"usage\""), std::string::npos) << "usage was not asked for";
}

TEST_F(GenerationTest, AdmitsAllPromptsOrNone) {
  test::World small({.max_sequences = 2, .max_tokens = 100});
  Services services = small.services();
  http::Request request;
  request.body = R"({"prompt":["a","b"]})";
  const auto fits = complete(services, request);
  work(*fits);
  EXPECT_FALSE(fits->admit({hub_, [] {}, {}}));
  EXPECT_EQ(small.queue.waiting_sequences(), 2u);

  request.body = R"({"prompt":"c"})";
  const auto full = complete(services, request);
  work(*full);
  const std::optional<http::Response> refused = full->admit({hub_, [] {}, {}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->fields.front().name, "Retry-After");
  EXPECT_EQ(small.metrics.admission_rejections.value(), 1u);
  EXPECT_EQ(hub_->num_open(), 2u) << "the refused request keeps no stream";
}

TEST_F(GenerationTest, ARequestLargerThanTheWholeLineIsTheCallersFault) {
  test::World small({.max_sequences = 2, .max_tokens = 100});
  Services services = small.services();
  http::Request request;
  request.body = R"({"prompt":["a","b","c"]})";
  const auto completion = complete(services, request);
  work(*completion);
  EXPECT_EQ(completion->admit({hub_, [] {}, {}})->status, 400);
  EXPECT_EQ(small.queue.waiting_sequences(), 0u);
}

TEST_F(GenerationTest, NoStreamLeftIsAFullQueue) {
  auto narrow = std::make_shared<bridge::StreamHub>(
      1, [] {}, world_.doorbell);
  auto completion = make(R"({"prompt":["a","b"]})");
  EXPECT_EQ(completion->admit({narrow, [] {}, {}})->status, 429);
  EXPECT_EQ(narrow->num_open(), 0u);
  EXPECT_EQ(world_.queue.waiting_sequences(), 0u);
}

TEST_F(GenerationTest, AClosedQueueIsUnavailable) {
  world_.queue.close();
  const json::value error = refusal(R"({"prompt":"a"})", 503);
  EXPECT_EQ(error.at("type"), "unavailable_error");
}

TEST_F(GenerationTest, DyingCancelsWhatRuns) {
  {
    const auto completion = start(R"({"prompt":["a","b"]})");
    say(0, 5, flow::Finish::kLength);
  }
  EXPECT_TRUE(submissions_[1].stream->cancelled());
}

TEST_F(GenerationTest, AFaultOfTheEngineEndsTheRequest) {
  auto completion = start(R"({"prompt":["a","b"],"max_tokens":5})");
  say(0, 5);
  submissions_[1].stream->push({-1, flow::Finish::kFailed});
  EXPECT_EQ(test::take_events(*completion), "");
  EXPECT_TRUE(completion->finished());
  EXPECT_TRUE(completion->failed());
  EXPECT_EQ(completion->whole().status, 500);
  EXPECT_TRUE(submissions_[0].stream->cancelled()) << "the other choice is not left running";
}

TEST_F(GenerationTest, AFailedEngineIsUnavailable) {
  auto completion = start(R"({"prompt":"a"})");
  world_.status.fail();
  submissions_[0].stream->push({-1, flow::Finish::kFailed});
  test::take_events(*completion);
  EXPECT_EQ(completion->whole().status, 503);
}

TEST_F(GenerationTest, AFaultInTheMiddleOfAStreamIsAnEventAndThenDone) {
  auto completion = start(R"({"prompt":"a","stream":true,"max_tokens":5,"stream_options":{"include_usage":true}})");
  say_text(0, " x", flow::Finish::kNone);
  std::string sent = test::take_events(*completion);
  submissions_[0].stream->push({-1, flow::Finish::kFailed});
  sent += test::take_events(*completion);
  const std::vector<std::string> events = events_of(sent);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(json::parse(events[1]).at("error").at("code"), 500);
  EXPECT_EQ(events[2], "[DONE]");
}

TEST_F(GenerationTest, AStallIsReported) {
  auto completion = start(R"({"prompt":"a","stream":true})");
  submissions_[0].stream->push({-1, flow::Finish::kCancelled});
  const std::vector<std::string> events = events_of(test::take_events(*completion));
  EXPECT_EQ(json::parse(events[0]).at("error").at("type"), "timeout_error");
}

TEST_F(GenerationTest, BeingCutShortIsReported) {
  auto completion = start(R"({"prompt":"a","stream":true})");
  completion->fail(Error{Code::kUnavailable, "going", "", 5});
  const std::vector<std::string> events = events_of(test::take_events(*completion));
  EXPECT_EQ(json::parse(events[0]).at("error").at("code"), 503);
  EXPECT_EQ(events[1], "[DONE]");
  EXPECT_TRUE(submissions_[0].stream->cancelled());
}

TEST_F(GenerationTest, TokensAreNewsOnceDrained) {
  const auto completion = start(R"({"prompt":"a"})");
  say(0, 5);
  hub_->drain();
  EXPECT_EQ(events_, 1);
}

}  // namespace
}  // namespace quire::api::test
