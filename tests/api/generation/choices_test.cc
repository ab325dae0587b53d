// Several answers to one prompt: what is submitted for them, which are told, and what is counted.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "api/services/cache_namespace.h"
#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;

class CompletionChoicesTest : public test::CompletionRig {
 protected:
  // One token of sequence i, with its log probability.
  void say_scored(std::size_t i, const std::string& text, float logprob, flow::Finish finish) {
    const std::vector<TokenId> ids = services_.tokenizer->encode(text, false);
    ASSERT_EQ(ids.size(), 1u) << text;
    submissions_[i].stream->push({ids[0], finish, logprob});
  }
  static std::vector<std::string> texts(const json::value& body) {
    std::vector<std::string> all;
    for (const json::value& choice : body.at("choices").as_array()) {
      EXPECT_EQ(choice.at("index").to_number<std::size_t>(), all.size());
      all.emplace_back(choice.at("text").as_string());
    }
    return all;
  }
};

using Texts = std::vector<std::string>;

TEST_F(CompletionChoicesTest, SubmitsBestOfSequencesThatDifferInTheirIndexAlone) {
  const auto completion = start(R"({"prompt":["one","two"],"n":2,"best_of":3,"seed":5,"max_tokens":4})");
  ASSERT_EQ(submissions_.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const flow::Request& request = submissions_[i].request;
    EXPECT_EQ(request.prompt, services_.tokenizer->encode(i < 3 ? "one" : "two", true));
    EXPECT_EQ(request.sampling.choice_index, i % 3);
    EXPECT_EQ(request.sampling.seed, 5u);
    EXPECT_EQ(request.max_tokens, 4u);
    EXPECT_TRUE(request.sampling.logprob);
    EXPECT_FALSE(request.beam);
    EXPECT_EQ(request.cache_namespace, submissions_[0].request.cache_namespace);
  }
}

TEST_F(CompletionChoicesTest, TheFirstOfManyIsTheOnlyOne) {
  const auto one = start(R"({"prompt":"one","seed":5})");
  const auto many = start(R"({"prompt":"one","seed":5,"n":4})");
  ASSERT_EQ(submissions_.size(), 5u);
  const flow::Request& alone = submissions_[0].request;
  const flow::Request& first = submissions_[1].request;
  EXPECT_EQ(alone.prompt, first.prompt);
  EXPECT_EQ(alone.sampling.choice_index, first.sampling.choice_index);
  EXPECT_EQ(alone.sampling.seed, first.sampling.seed);
  EXPECT_EQ(alone.sampling.logprob, first.sampling.logprob);
  EXPECT_EQ(alone.cache_namespace, first.cache_namespace);
}

TEST_F(CompletionChoicesTest, AnswersOfAllPromptsAreNumberedInTheirOrder) {
  auto completion = start(R"({"prompt":["one","two"],"n":2,"max_tokens":9})");
  for (const std::size_t i : {3, 0, 2, 1}) say_text(i, std::string(" ") + "abcd"[i], flow::Finish::kLength);
  EXPECT_EQ(texts(whole(*completion)), (Texts{" a", " b", " c", " d"}));
}

TEST_F(CompletionChoicesTest, TheBestByMeanLogProbabilityAreReturned) {
  auto completion = start(R"({"prompt":["one","two"],"n":2,"best_of":3,"max_tokens":9})");
  say_scored(0, " a", -3.0f, flow::Finish::kLength);
  say_scored(1, " b", -1.0f, flow::Finish::kNone);  // mean -2, sum -4: the longest, and the worst by its sum
  say_scored(1, " b", -3.0f, flow::Finish::kNone);
  say_scored(1, " b", -2.0f, flow::Finish::kLength);
  say_scored(2, " c", -2.5f, flow::Finish::kLength);
  say_scored(3, " d", -0.5f, flow::Finish::kLength);
  say_scored(4, " e", -0.4f, flow::Finish::kLength);
  say_scored(5, " f", -0.6f, flow::Finish::kLength);
  const json::value body = whole(*completion);
  EXPECT_EQ(texts(body), (Texts{" b b b", " c", " e", " d"}));
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 8) << "those that are not told were generated, too";
}

TEST_F(CompletionChoicesTest, EquallyGoodAnswersKeepTheirOrder) {
  auto completion = start(R"({"prompt":"one","n":3,"best_of":4,"max_tokens":9})");
  say_scored(0, " a", -2.0f, flow::Finish::kLength);
  for (const std::size_t i : {3, 2, 1}) say_scored(i, std::string(" ") + "abcd"[i], -1.0f, flow::Finish::kLength);
  EXPECT_EQ(texts(whole(*completion)), (Texts{" b", " c", " d"}));
}

TEST_F(CompletionChoicesTest, TheStopTokenCountsInTheMean) {
  auto completion = start(R"({"prompt":"one","best_of":2,"max_tokens":9})");
  say_scored(0, " a", -1.0f, flow::Finish::kNone);
  submissions_[0].stream->push({0, flow::Finish::kStop, -4.0f});  // mean -2.5
  say_scored(1, " b", -2.0f, flow::Finish::kLength);
  EXPECT_EQ(texts(whole(*completion)), (Texts{" b"}));
}

TEST_F(CompletionChoicesTest, WhatComesAfterAStopStringHasNoPartInTheMean) {
  auto completion = start(R"({"prompt":"one","best_of":2,"max_tokens":9,"stop":" king"})");
  say_scored(0, " old", -1.0f, flow::Finish::kNone);
  say_scored(0, " king", -2.0f, flow::Finish::kNone);  // the end: mean -1.5
  say_scored(0, " a", -50.0f, flow::Finish::kNone);
  say_scored(1, " b", -1.6f, flow::Finish::kLength);
  const json::value body = whole(*completion);
  EXPECT_EQ(texts(body), (Texts{" old"}));
  EXPECT_EQ(body.at("choices").at(0).at("stop_reason"), " king");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 3);
}

TEST_F(CompletionChoicesTest, AnImpossibleTokenMakesTheWorstAnswer) {
  auto completion = start(R"({"prompt":"one","n":2,"best_of":3,"max_tokens":9})");
  say_scored(0, " a", -std::numeric_limits<float>::infinity(), flow::Finish::kLength);
  say_scored(1, " b", -90.0f, flow::Finish::kLength);
  say_scored(2, " c", -80.0f, flow::Finish::kLength);
  EXPECT_EQ(texts(whole(*completion)), (Texts{" c", " b"}));
}

TEST_F(CompletionChoicesTest, WithoutAChoiceNothingIsRanked) {
  auto completion = start(R"({"prompt":"one","n":2,"max_tokens":9})");
  say_scored(0, " a", -9.0f, flow::Finish::kLength);
  say_scored(1, " b", -1.0f, flow::Finish::kLength);
  EXPECT_EQ(texts(whole(*completion)), (Texts{" a", " b"}));
}

TEST_F(CompletionChoicesTest, GreedyAnswersAreEqualAndAsMany) {
  const auto completion = start(R"({"prompt":"one","n":3,"temperature":0})");
  ASSERT_EQ(submissions_.size(), 3u);
  for (const bridge::Submission& one : submissions_) EXPECT_EQ(one.request.sampling.temperature, 0.0f);
}

TEST_F(CompletionChoicesTest, APromptIsCountedOnceAndItsCachedTokensAreTheLeast) {
  auto completion = start(R"({"prompt":["one two three","four"],"n":2,"best_of":3,"max_tokens":2})");
  const std::uint32_t cached[] = {48, 16, 32, 64, 0, 64};
  for (std::size_t i = 0; i < 6; ++i) {
    submissions_[i].stream->timeline()->note_start(TimePoint{}, cached[i]);
    say(i, 5, flow::Finish::kLength);
  }
  const json::value usage = whole(*completion).at("usage");
  const std::size_t prompts =
      services_.tokenizer->encode("one two three", true).size() + services_.tokenizer->encode("four", true).size();
  EXPECT_EQ(usage.at("prompt_tokens").to_number<std::size_t>(), prompts);
  EXPECT_EQ(usage.at("completion_tokens"), 6);
  EXPECT_EQ(usage.at("total_tokens").to_number<std::size_t>(), prompts + 6);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), 16) << "16 of the first prompt, 0 of the second";
  EXPECT_EQ(completion->tally().prompt_tokens, prompts);
  EXPECT_EQ(completion->tally().completion_tokens, 6u);
}

TEST_F(CompletionChoicesTest, AStreamEndsEachChoiceOnceAndReturnsUsageOnce) {
  auto completion =
      start(R"({"prompt":["one","two"],"n":2,"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}})");
  std::string sent;
  for (const std::size_t i : {2, 0, 3, 1}) {
    say_text(i, std::string(" ") + "abcd"[i], flow::Finish::kNone);
    sent += test::take_events(*completion);
    if (i == 3) {
      say(i, 0, flow::Finish::kStop);
    } else {
      say_text(i, " x", flow::Finish::kLength);
    }
    sent += test::take_events(*completion);
  }
  EXPECT_TRUE(completion->finished());
  const std::vector<std::string> events = test::events_of(sent);
  EXPECT_EQ(test::text_of(events, 0), " a x");
  EXPECT_EQ(test::text_of(events, 1), " b x");
  EXPECT_EQ(test::text_of(events, 2), " c x");
  EXPECT_EQ(test::text_of(events, 3), " d");
  std::vector<int> ends(4);
  int usages = 0;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const json::value parsed = json::parse(event);
    usages += parsed.at("usage").is_object();
    for (const json::value& choice : parsed.at("choices").as_array()) {
      if (choice.at("finish_reason").is_null()) continue;
      ++ends.at(choice.at("index").to_number<std::size_t>());
      EXPECT_EQ(choice.at("finish_reason"), choice.at("index") == 3 ? "stop" : "length");
    }
  }
  EXPECT_EQ(ends, (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(usages, 1);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(CompletionChoicesTest, OneFaultEndsEverySibling) {
  auto completion = start(R"({"prompt":"one","n":3,"max_tokens":9})");
  submissions_[1].stream->push({-1, flow::Finish::kFailed});
  test::take_events(*completion);
  EXPECT_EQ(completion->whole().status, 500);
  EXPECT_TRUE(submissions_[0].stream->cancelled());
  EXPECT_TRUE(submissions_[2].stream->cancelled());
}

TEST_F(CompletionChoicesTest, CopiesOfAPromptAreCountedBeforeTheyAreMade) {
  test::World small({.max_sequences = 100, .max_tokens = 100});
  const Services services = small.services();
  const auto status = [&](int n) {
    http::Request request;
    request.body = R"({"prompt":[1,2,3,4,5,6,7,8,9,10],"n":)" + std::to_string(n) + "}";
    const auto completion = complete(services, request);
    work(*completion);
    const auto refused = completion->admit({hub_, [] {}, {}});
    while (small.queue.pop()) {
    }
    return refused ? refused->status : 0;
  };
  EXPECT_EQ(status(9), 0);
  EXPECT_EQ(status(10), 0);
  EXPECT_EQ(status(11), 400);
}

// ---- searches

TEST_F(CompletionChoicesTest, ASearchIsOneSubmissionWithAStreamForEachAnswer) {
  const auto completion =
      start(R"({"prompt":["one","two"],"use_beam_search":true,"n":3,"best_of":4,"length_penalty":0.5,"seed":2})");
  ASSERT_EQ(submissions_.size(), 2u);
  for (const bridge::Submission& submission : submissions_) {
    ASSERT_TRUE(submission.request.beam);
    EXPECT_EQ(submission.request.beam->width, 4u);
    EXPECT_EQ(submission.request.beam->num_best, 3u);
    EXPECT_EQ(submission.request.beam->length_penalty, 0.5);
    EXPECT_EQ(submission.request.sampling.temperature, 0.0f);
    EXPECT_EQ(submission.request.sampling.choice_index, 0u);
    ASSERT_EQ(submission.more_streams.size(), 2u);
    EXPECT_NE(submission.more_streams[0], submission.more_streams[1]);
    EXPECT_NE(submission.stream, submission.more_streams[0]);
  }
  EXPECT_EQ(hub_->num_open(), 6u);
}

TEST_F(CompletionChoicesTest, ASearchReturnsItsHypothesesInTheirOrder) {
  auto completion = start(R"({"prompt":["one","two"],"use_beam_search":true,"n":2,"max_tokens":9})");
  for (std::size_t p = 0; p < 2; ++p) {
    const std::vector<TokenId> best = services_.tokenizer->encode(p == 0 ? " a" : " c", false);
    const std::vector<TokenId> second = services_.tokenizer->encode(p == 0 ? " b" : " d", false);
    // Of the search's one prefill; nothing is said on the others.
    submissions_[p].stream->timeline()->note_start(TimePoint{}, 16);
    submissions_[p].more_streams[0]->push({second[0], flow::Finish::kLength});
    submissions_[p].stream->push({best[0], flow::Finish::kNone});
    submissions_[p].stream->push({0, flow::Finish::kStop});
  }
  const json::value body = whole(*completion);
  EXPECT_EQ(texts(body), (Texts{" a", " b", " c", " d"}));
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
  EXPECT_EQ(body.at("choices").at(1).at("finish_reason"), "length");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 6);
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("cached_tokens"), 32);
}

TEST_F(CompletionChoicesTest, ASearchThatNobodyWaitsForIsCancelledOnAllItsStreams) {
  { const auto completion = start(R"({"prompt":"one","use_beam_search":true,"n":2})"); }
  EXPECT_TRUE(submissions_[0].stream->cancelled());
  EXPECT_TRUE(submissions_[0].more_streams[0]->cancelled());
}

TEST_F(CompletionChoicesTest, TheEngineOfTheTestsReturnsEveryHypothesis) {
  test::FakeEngine engine(world_);
  auto completion = make(R"({"prompt":[7,8,9],"use_beam_search":true,"n":3,"max_tokens":5,"ignore_eos":true})");
  ASSERT_FALSE(completion->admit({hub_, [] {}, {}}));
  ASSERT_TRUE(engine.wait_ended(3));
  EXPECT_EQ(whole(*completion).at("usage").at("completion_tokens"), 15);
}

// ---- who shares with whom

TEST_F(CompletionChoicesTest, OneSaltIsOneNamespaceAndAnotherIsAnother) {
  const auto root_of = [this](const std::string& fields) {
    submissions_.clear();
    const auto completion = start(R"({"prompt":"one")" + fields + "}");
    return submissions_[0].request.cache_namespace;
  };
  const auto plain = root_of("");
  ASSERT_TRUE(plain);
  EXPECT_EQ(*plain, cache_namespace({.numeric_mode = "fp-test", .adapter = {}, .tenant = "0", .salt = {}}));
  EXPECT_EQ(root_of(R"(,"seed":9,"n":3,"temperature":0)"), plain);
  const auto salted = root_of(R"(,"cache_salt":"a")");
  EXPECT_EQ(root_of(R"(,"cache_salt":"a")"), salted);
  EXPECT_NE(salted, plain);
  EXPECT_NE(root_of(R"(,"cache_salt":"b")"), salted);
  EXPECT_FALSE(root_of(R"(,"n":2,"kv_policy":{"type":"sink_window","sinks":16,"window":256})"));
}

TEST_F(CompletionChoicesTest, WithoutAPrefixCacheOnlySiblingsShare) {
  services_.prefix_caching = false;
  const auto one = start(R"({"prompt":"one","cache_salt":"a"})");
  const auto many = start(R"({"prompt":["one","one"],"n":2})");
  ASSERT_EQ(submissions_.size(), 5u);
  EXPECT_FALSE(submissions_[0].request.cache_namespace);
  ASSERT_TRUE(submissions_[1].request.cache_namespace);
  EXPECT_EQ(submissions_[1].request.cache_namespace, submissions_[2].request.cache_namespace);
  EXPECT_EQ(submissions_[3].request.cache_namespace, submissions_[4].request.cache_namespace);
  EXPECT_NE(submissions_[1].request.cache_namespace, submissions_[3].request.cache_namespace);
}

TEST_F(CompletionChoicesTest, HandsOnHowEachOfItsSequencesIsDrafted) {
  services_.speculative_methods = {"ngram", "suffix"};
  http::Request request;
  request.body = R"({"prompt":"a","n":2,"speculative":{"method":"suffix","num_speculative_tokens":7}})";
  const auto completion = complete(services_, request);
  work(*completion);
  ASSERT_FALSE(completion->admit({hub_, [] {}, {}}));
  for (int i = 0; i < 2; ++i) {
    const auto submission = world_.queue.pop();
    ASSERT_TRUE(submission);
    EXPECT_TRUE(submission->request.speculation.enabled);
    EXPECT_EQ(submission->request.speculation.max_nodes, 7u);
    EXPECT_EQ(submission->request.speculation.drafter, 1u);
  }
}

TEST_F(CompletionChoicesTest, HandsOnWhatOrdersTheLine) {
  const TimePoint arrival = std::chrono::steady_clock::now();
  http::Request request;
  request.arrival = arrival;
  request.body = R"({"prompt":"a","priority":-3,"deadline_ms":150000,)"
                 R"("kv_policy":{"type":"heavy_hitters","sinks":16,"window":256,"budget":32}})";
  const auto completion = complete(services_, request);
  work(*completion);
  ASSERT_FALSE(completion->admit({hub_, [] {}, {}}));
  const auto submission = world_.queue.pop();
  EXPECT_EQ(submission->request.priority, -3);
  EXPECT_EQ(submission->request.deadline, arrival + std::chrono::milliseconds(150000));
  EXPECT_EQ(submission->request.kv_policy.kind, flow::KvPolicy::Kind::kHeavyHitters);
  EXPECT_EQ(submission->request.kv_policy.budget, 32u);
}

}  // namespace
}  // namespace quire::api::test
