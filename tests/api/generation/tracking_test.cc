// What a generation tells of itself besides its answer: its key, its timings, and that somebody ended it by name.
#include <algorithm>

#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

using namespace std::chrono_literals;

class TrackingTest : public CompletionRig {
 protected:
  std::string key_of(const Generation& generation) {
    for (const http::Field& field : generation.fields()) {
      if (field.name == "X-Request-Key") return field.value;
    }
    return {};
  }
  // As the engine does with a request that was cancelled.
  void drop_cancelled() {
    for (const bridge::Submission& one : submissions_) {
      if (one.stream->cancelled()) one.stream->push({-1, flow::Finish::kCancelled});
    }
  }
};

TEST_F(TrackingTest, CanBeFoundByItsKeyFromItsAdmissionToItsEnd) {
  auto generation = start(R"({"prompt":"a"})");
  const std::string key = key_of(*generation);
  ASSERT_EQ(key.size(), 32u);
  EXPECT_TRUE(world_.requests.find("r1", key)->running);
  say(0, 17, flow::Finish::kLength);
  whole(*generation);
  generation.reset();
  EXPECT_FALSE(world_.requests.find("r1", key)->running);
}

TEST_F(TrackingTest, TheBodysRequestIdIsItsName) {
  auto generation = start(R"({"prompt":"a","request_id":"mine"})");
  EXPECT_TRUE(world_.requests.find("mine", key_of(*generation)));
}

TEST_F(TrackingTest, ARefusedOneHasNoKey) {
  EXPECT_EQ(key_of(*make(R"({"prompt":""})")), "") << "before it is admitted";
  refusal(R"({"prompt":1})", 400);
}

TEST_F(TrackingTest, AWholeAnswerHasItsTimings) {
  auto generation = start(R"({"prompt":"Once upon a time"})");
  bridge::Timeline& timeline = *submissions_[0].stream->timeline();
  timeline.begin(TimePoint{}, 4);
  timeline.note_start(TimePoint{} + 2ms, 0);
  timeline.note_token(TimePoint{} + 4ms);
  say(0, 17, flow::Finish::kLength);
  const json::value timings = whole(*generation).at("timings");
  EXPECT_EQ(timings.at("queued_ms").to_number<double>(), 2.0);
  EXPECT_EQ(timings.at("prompt_ms").to_number<double>(), 2.0);
  EXPECT_EQ(timings.at("prompt_n").to_number<std::size_t>(), submissions_[0].request.prompt.size());
  EXPECT_EQ(timings.at("predicted_n"), 1);
}

TEST_F(TrackingTest, AStreamHasThemInItsLastEventAlone) {
  for (const char* usage : {"", R"(,"stream_options":{"include_usage":true})"}) {
    submissions_.clear();
    auto generation = start(R"({"prompt":"a","n":3,"stream":true)" + std::string(usage) + "}");
    std::string text;
    say(0, 17);
    say(1, 17, flow::Finish::kLength);
    text += test::take_events(*generation);
    say(2, 17, flow::Finish::kLength);
    say(0, 18, flow::Finish::kLength);
    text += test::take_events(*generation);
    std::vector<std::string> events = events_of(text);
    ASSERT_EQ(events.back(), "[DONE]");
    events.pop_back();
    for (const std::string& event : events) {
      EXPECT_EQ(event.find("\"timings\":") != std::string::npos, &event == &events.back()) << event;
    }
  }
}

TEST_F(TrackingTest, OneThatIsCancelledByIdEndsWithItsTextSoFar) {
  auto generation = start(R"({"prompt":"a","n":2})");
  const auto ids = services_.tokenizer->encode(" upon a time", false);
  for (const TokenId id : ids) say(0, id);
  say(1, ids[0], flow::Finish::kLength);
  test::take_events(*generation);
  EXPECT_TRUE(world_.requests.cancel("r1", key_of(*generation)));
  drop_cancelled();
  const json::value answer = whole(*generation);
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "abort");
  EXPECT_EQ(answer.at("choices").at(0).at("text"), " upon a time");
  EXPECT_EQ(answer.at("choices").at(1).at("finish_reason"), "length") << "it had ended";
  EXPECT_EQ(answer.at("usage").at("completion_tokens").to_number<std::size_t>(), ids.size() + 1);
}

TEST_F(TrackingTest, AStreamThatIsCancelledEndsInGoodOrder) {
  auto generation = start(R"({"prompt":"a","n":2,"stream":true})");
  say(0, 17);
  test::take_events(*generation);
  EXPECT_TRUE(world_.requests.cancel("r1", key_of(*generation)));
  EXPECT_TRUE(submissions_[1].stream->cancelled());
  drop_cancelled();
  const std::vector<std::string> events = events_of(test::take_events(*generation));
  ASSERT_EQ(events.size(), 3u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(json::parse(events[i]).at("choices").at(0).at("finish_reason"), "abort");
  }
  EXPECT_EQ(events[2], "[DONE]");
  EXPECT_TRUE(generation->finished());
  EXPECT_FALSE(generation->failed());
}

TEST_F(TrackingTest, BestOfReturnsSomeCandidateWhenCancelled) {
  auto generation = start(R"({"prompt":"a","n":1,"best_of":3})");
  submissions_[1].stream->push({17, flow::Finish::kNone, -1.0f});
  test::take_events(*generation);
  EXPECT_TRUE(world_.requests.cancel("r1", key_of(*generation)));
  drop_cancelled();
  const json::value answer = whole(*generation);
  ASSERT_EQ(answer.at("choices").as_array().size(), 1u);
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "abort");
}

TEST_F(TrackingTest, APromptThatWasToBeScoredHasNothingToReturn) {
  auto generation = start(R"({"prompt":"Once upon","max_tokens":3,"prompt_logprobs":1})");
  EXPECT_TRUE(world_.requests.cancel("r1", key_of(*generation)));
  drop_cancelled();
  test::take_events(*generation);
  EXPECT_TRUE(generation->finished());
  EXPECT_TRUE(generation->failed());
  EXPECT_EQ(generation->whole().status, 499);
}

TEST_F(TrackingTest, OneThatTheEngineDropsByItselfFailsAsBefore) {
  auto generation = start(R"({"prompt":"a"})");
  say(0, -1, flow::Finish::kCancelled);
  test::take_events(*generation);
  EXPECT_TRUE(generation->failed());
  EXPECT_EQ(generation->whole().status, 408);
}

}  // namespace
}  // namespace quire::api::test
