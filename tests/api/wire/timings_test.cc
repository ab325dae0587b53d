#include "api/wire/timings.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <vector>

namespace quire::api::requests::timings_test {
namespace {

using namespace std::chrono_literals;
using bridge::Timeline;
namespace json = boost::json;

constexpr TimePoint kArrival = TimePoint{} + 10s;

// One that waited, and then said so many tokens, one a step.
std::shared_ptr<Timeline> ran(Duration queued, Duration prefill, std::uint32_t num_tokens, Duration step) {
  auto timeline = std::make_shared<Timeline>();
  timeline->begin(kArrival, 10);
  timeline->note_start(kArrival + queued, 0);
  for (std::uint32_t i = 0; i < num_tokens; ++i) timeline->note_token(kArrival + queued + prefill + i * step);
  return timeline;
}

json::value timings(std::vector<std::shared_ptr<const Timeline>> timelines, const TokenCounts& counts) {
  std::string text;
  append_timings(text, timelines, counts);
  return json::parse("{" + text + "}").at("timings");
}

TEST(Timings, SayWhatWasComputedAndHowFast) {
  const json::value reported = timings({ran(2ms, 40ms, 11, 5ms)}, {.prompt = 100, .cached = 60, .completion = 11});
  EXPECT_EQ(reported.at("queued_ms").to_number<double>(), 2.0);
  EXPECT_EQ(reported.at("cache_n"), 60);
  EXPECT_EQ(reported.at("prompt_n"), 40);
  EXPECT_EQ(reported.at("prompt_ms").to_number<double>(), 40.0);
  EXPECT_EQ(reported.at("prompt_per_second").to_number<double>(), 1000.0);
  EXPECT_EQ(reported.at("predicted_n"), 11);
  EXPECT_EQ(reported.at("predicted_ms").to_number<double>(), 50.0);
  EXPECT_EQ(reported.at("predicted_per_second").to_number<double>(), 200.0) << "of the ten behind the first";
}

TEST(Timings, OfSeveralSequencesReachFromTheFirstToTheLast) {
  const json::value reported = timings({ran(2ms, 40ms, 5, 10ms), ran(10ms, 42ms, 5, 10ms)}, {20, 0, 10});
  EXPECT_EQ(reported.at("queued_ms").to_number<double>(), 2.0);
  EXPECT_EQ(reported.at("prompt_ms").to_number<double>(), 50.0);
  EXPECT_EQ(reported.at("predicted_ms").to_number<double>(), 50.0) << "from 42 to 92";
  EXPECT_EQ(reported.at("predicted_per_second").to_number<double>(), 160.0);
}

TEST(Timings, CountTheDraftsOfAllSequencesWhereThereWereAny) {
  const auto one = ran(2ms, 40ms, 5, 10ms);
  const auto other = ran(2ms, 40ms, 5, 10ms);
  EXPECT_FALSE(timings({one, other}, {20, 0, 10}).as_object().contains("draft_n"));
  one->note_draft(4, 0);
  const json::value in_vain = timings({one, other}, {20, 0, 10});
  EXPECT_EQ(in_vain.at("draft_n"), 4);
  EXPECT_EQ(in_vain.at("draft_n_accepted"), 0);
  one->note_draft(64, 3);
  other->note_draft(2, 2);
  const json::value reported = timings({one, other}, {20, 0, 10});
  EXPECT_EQ(reported.at("draft_n"), 70);
  EXPECT_EQ(reported.at("draft_n_accepted"), 5);
}

TEST(Timings, OfWhatNeverCameAreZero) {
  for (const json::value& reported : {timings({std::make_shared<Timeline>()}, {5, 0, 0}), timings({}, {5, 0, 0})}) {
    for (const char* name : {"queued_ms", "prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second"}) {
      EXPECT_EQ(reported.at(name).to_number<double>(), 0.0) << name;
    }
  }
  EXPECT_EQ(timings({ran(1ms, 2ms, 1, 0ms)}, {5, 4, 1}).at("predicted_per_second").to_number<double>(), 0.0)
      << "one token has no pace";
}

}  // namespace
}  // namespace quire::api::requests::timings_test
