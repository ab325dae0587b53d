// What one turn of an io thread takes of what the engine said, and writes of it: counted, not timed.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "api/generation/generation.h"
#include "tests/api/generation/completion_rig.h"

namespace quire::api::test {
namespace {

namespace json = boost::json;
using test::events_of;

constexpr std::size_t kRing = bridge::TokenStream::kCapacity - 1;  // a stream's tokens, the place for its end left out

class SlicesTest : public test::CompletionRig {
 protected:
  // All choices have said all that their streams hold, each token with so many likeliest ones.
  void say_all(std::size_t num_choices, std::size_t num_tokens, std::uint32_t num_top) {
    std::vector<flow::Candidate> top;
    for (std::uint32_t i = 0; i < num_top; ++i) top.push_back({static_cast<TokenId>(300 + i), -1.5f});
    for (std::size_t i = 0; i < num_choices; ++i) {
      for (std::size_t k = 0; k < num_tokens; ++k) {
        submissions_[i].stream->push({static_cast<TokenId>(300 + k), flow::Finish::kNone, -1.5f}, top);
      }
    }
  }
  static std::size_t tokens_in(const std::string& events) {
    std::size_t sum = 0;
    for (const std::string& event : events_of(events)) {
      if (event == "[DONE]") continue;
      const json::value parsed = json::parse(event);  // lives as long as the loop over a part of it
      for (const json::value& choice : parsed.at("choices").as_array()) {
        if (choice.at("logprobs").is_object()) sum += choice.at("logprobs").at("tokens").as_array().size();
      }
    }
    return sum;
  }
};

TEST_F(SlicesTest, AStreamsTimeSliceIsBoundedForAnyNumberOfChoicesAndLikeliestTokens) {
  for (const std::uint32_t num_top : {0u, 1u, 20u}) {
    SCOPED_TRACE(num_top);
    submissions_.clear();
    auto completion =
        start(R"({"prompt":"Once","n":128,"max_tokens":100,"stream":true,"logprobs":)" + std::to_string(num_top) + "}");
    say_all(128, kRing, num_top);
    std::size_t reported = 0;
    std::size_t num_slices = 0;
    for (bool more = true; more; ++num_slices) {
      const http::Taken taken = completion->take();
      more = taken.more;
      const std::size_t num_tokens = tokens_in(completion->events());
      reported += num_tokens;
      EXPECT_LE(num_tokens * (1 + num_top), http::kSliceSize + 1 + num_top);
      EXPECT_GE(taken.size, num_tokens * (1 + num_top)) << "what says whether a worker should write it";
      ASSERT_LT(num_slices, 1000u);
    }
    EXPECT_EQ(reported, 128 * kRing);
    EXPECT_GE(num_slices, 128 * kRing * (1 + num_top) / (http::kSliceSize + 1 + num_top));
    EXPECT_EQ(completion->take().more, false);
  }
}

TEST_F(SlicesTest, AnAnswerThatIsNotStreamedIsTakenInSlicesToo) {
  auto completion = start(R"({"prompt":"Once","n":128,"max_tokens":63,"logprobs":20})");
  say_all(128, kRing - 1, 20);
  std::size_t before = 0;
  std::size_t num_slices = 0;
  for (bool more = true; more; ++num_slices) {
    more = completion->take().more;
    const std::size_t taken = completion->tally().completion_tokens - before;
    before += taken;
    EXPECT_LE(taken * 21, http::kSliceSize + 21);
    ASSERT_LT(num_slices, 1000u);
  }
  EXPECT_EQ(before, 128 * (kRing - 1));
  EXPECT_FALSE(completion->finished()) << "nobody has ended";
  for (std::size_t i = 0; i < 128; ++i) say(i, 300, flow::Finish::kLength);
  EXPECT_EQ(whole(*completion).at("choices").as_array().size(), 128u);
}

TEST_F(SlicesTest, WhoTakesTheWholeSliceIsWhereTheNextOneBegins) {
  // A turn has room for 98 tokens with 20 likeliest: 63 of the first choice, 35 of the second.
  auto completion = start(R"({"prompt":"Once","n":2,"max_tokens":100,"stream":true,"logprobs":20})");
  say_all(2, kRing, 20);
  EXPECT_TRUE(completion->take().more);
  const std::size_t first = tokens_in(completion->events());
  EXPECT_GT(first, kRing);
  EXPECT_LT(first, 2 * kRing);
  EXPECT_FALSE(completion->take().more);
  EXPECT_EQ(first + tokens_in(completion->events()), 2 * kRing);
}

TEST_F(SlicesTest, WhatOneSliceHoldsIsTakenInOne) {
  auto completion = start(R"({"prompt":"Once","n":2,"max_tokens":100,"stream":true})");
  say_all(2, kRing, 0);
  EXPECT_FALSE(completion->take().more);
  EXPECT_EQ(events_of(completion->events()).size(), 2u);
}

TEST_F(SlicesTest, AFaultOfOneChoiceEndsTheTimeSlicesOfAll) {
  auto completion = start(R"({"prompt":"Once","n":128,"max_tokens":100,"stream":true,"logprobs":20})");
  say_all(128, kRing, 20);
  submissions_[1].stream->push({-1, flow::Finish::kFailed});
  std::size_t num_slices = 0;
  while (completion->take().more) {
    completion->events();
    ASSERT_LT(++num_slices, 3u);
  }
  EXPECT_TRUE(completion->failed());
  EXPECT_TRUE(completion->finished());
}

TEST_F(SlicesTest, StreamsAreOpenedInSlicesOf64) {
  const auto slices_of = [this](const std::string& body) {
    auto completion = make(body);
    const http::IoHandle io_handle{hub_, [] {}, {}};
    std::vector<std::uint32_t> open_after;
    bool more = true;
    while (more) {
      more = completion->open(io_handle);
      open_after.push_back(hub_->num_open());
    }
    EXPECT_FALSE(completion->admit(io_handle));
    EXPECT_EQ(hub_->num_open(), open_after.back()) << "admission opens no more";
    submissions_.clear();
    while (auto submission = world_.queue.pop()) submissions_.push_back(std::move(*submission));
    EXPECT_EQ(submissions_.size(), open_after.back());
    submissions_.clear();
    return open_after;
  };
  using Slices = std::vector<std::uint32_t>;
  EXPECT_EQ(slices_of(R"({"prompt":"Once","n":63,"max_tokens":2})"), Slices({63}));
  EXPECT_EQ(slices_of(R"({"prompt":"Once","n":64,"max_tokens":2})"), Slices({64}));
  EXPECT_EQ(slices_of(R"({"prompt":"Once","n":65,"max_tokens":2})"), Slices({64, 65}));
  EXPECT_EQ(slices_of(R"({"prompt":["Once","upon"],"n":64,"max_tokens":2})"), Slices({64, 128}));
}

TEST_F(SlicesTest, WhereStreamsRunOutBetweenSlicesTheAnswerIsRefusedAndAllAreGivenBack) {
  auto completion = make(R"({"prompt":"Once","n":128,"max_tokens":2})");
  const http::IoHandle io_handle{hub_, [] {}, {}};
  EXPECT_TRUE(completion->open(io_handle));
  std::vector<std::shared_ptr<bridge::TokenStream>> others;
  while (others.size() < 256 - 127) others.push_back(hub_->open([] {}));
  EXPECT_FALSE(completion->open(io_handle));
  const std::optional<http::Response> refused = completion->admit(io_handle);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(hub_->num_open(), others.size());
}

// An echo's scores are one event, which no turn can cut: that it is long is said, and a worker writes it.
TEST_F(SlicesTest, TheScoresOfAPromptCountAsLong) {
  std::string prompt;
  for (int i = 0; i < 400; ++i) prompt += std::string(i == 0 ? "" : ",") + std::to_string(300 + i);
  auto completion = start(R"({"prompt":[)" + prompt + R"(],"max_tokens":1,"echo":true,"logprobs":20,"stream":true})");
  bridge::PromptScores& scores = *submissions_[0].stream->scores_to_write();
  std::fill(scores.logprobs.begin(), scores.logprobs.end(), -1.0f);
  for (flow::Candidate& one : scores.top) one = {TokenId{301}, -1.0f};
  submissions_[0].stream->push({TokenId{300}, flow::Finish::kLength, -1.0f});
  EXPECT_GE(completion->take().size, 399u * 21);
  EXPECT_EQ(tokens_in(completion->events()), 401u);
}

}  // namespace
}  // namespace quire::api::test
