#include "core/text/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace quire::text {
namespace {

using ::testing::ElementsAre;

struct Outcome {
  std::vector<std::string> texts;  // of every push, then finish()
  std::string stop;                // empty: not stopped
};

Outcome outcome(const std::vector<std::string>& stops, const std::vector<std::string>& pushes) {
  StopMatcher matcher(stops);
  Outcome seen;
  for (const std::string& push : pushes) {
    const StopMatcher::Step step = matcher.push(push);
    seen.texts.push_back(step.text);
    if (step.stopped) seen.stop = step.stop;
  }
  seen.texts.push_back(matcher.finish());
  return seen;
}

std::string joined(const Outcome& seen) {
  std::string text;
  for (const std::string& part : seen.texts) text += part;
  return text;
}

TEST(StopMatcher, SendsTextOnWhereNothingCanStop) {
  EXPECT_THAT(outcome({}, {"abc", "d"}).texts, ElementsAre("abc", "d", ""));
  EXPECT_THAT(outcome({""}, {"abc"}).texts, ElementsAre("abc", ""));
}

TEST(StopMatcher, HoldsBackWhatMayBecomeAStop) {
  const Outcome seen = outcome({"STOP"}, {"go S", "T", "ART ST", "O"});
  EXPECT_THAT(seen.texts, ElementsAre("go ", "", "START ", "", "STO"));
  EXPECT_EQ(seen.stop, "");
}

TEST(StopMatcher, CutsBeforeAStopAcrossPushes) {
  const Outcome seen = outcome({"STOP"}, {"go S", "TO", "P on", "more"});
  EXPECT_THAT(seen.texts, ElementsAre("go ", "", "", "", ""));
  EXPECT_EQ(seen.stop, "STOP");
}

TEST(StopMatcher, ReportsWhetherTextThatIsStillHeldWouldStop) {
  StopMatcher matcher({"ab\n\n", "\n\n\n"});
  EXPECT_EQ(matcher.push("xa").text, "x");
  EXPECT_FALSE(matcher.would_stop("b"));
  EXPECT_EQ(matcher.push("").text, "");  // nothing is said meanwhile
  EXPECT_FALSE(matcher.would_stop("\n"));
  EXPECT_TRUE(matcher.would_stop("\n"));
  EXPECT_TRUE(matcher.would_stop("\n"));  // the other one
  EXPECT_EQ(matcher.push("!").text, "a!");
  EXPECT_FALSE(matcher.would_stop("b\n"));
  EXPECT_EQ(matcher.push("ab\n\n").stop, "ab\n\n");
}

TEST(StopMatcher, StaysStopped) {
  StopMatcher matcher({"x"});
  EXPECT_TRUE(matcher.push("ax").stopped);
  const StopMatcher::Step again = matcher.push("bx");
  EXPECT_TRUE(again.stopped);
  EXPECT_EQ(again.text, "");
  EXPECT_EQ(again.stop, "x");
}

TEST(StopMatcher, TheStopThatIsCompleteFirstWins) {
  EXPECT_EQ(outcome({"abcd", "bc"}, {"zabcd"}).stop, "bc");
  EXPECT_EQ(joined(outcome({"abcd", "bc"}, {"zabcd"})), "za");
}

TEST(StopMatcher, OfStopsCompleteTogetherTheLongestWins) {
  for (const auto& stops : {std::vector<std::string>{"c", "abc", "bc"}, {"abc", "bc", "c"}}) {
    EXPECT_EQ(outcome(stops, {"zabc"}).stop, "abc");
    EXPECT_EQ(joined(outcome(stops, {"zabc"})), "z");
  }
}

TEST(StopMatcher, NeedsNoRestartInsideOfAFalseStart) {
  EXPECT_EQ(joined(outcome({"aab"}, {"aaaab"})), "aa");
  EXPECT_EQ(joined(outcome({"abab!"}, {"ababab!"})), "ab");
}

TEST(StopMatcher, EqualsASearchAfterEveryByteHoweverTheTextIsCut) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto word = [&](std::size_t max_size) {
    std::string text(1 + random() % max_size, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(1 + random() % 3), pushes(1 + random() % 6);
    for (std::string& stop : stops) stop = word(5);
    std::string all;
    for (std::string& push : pushes) all += push = word(4);

    std::string want = all, want_stop;
    for (std::size_t end = 1; end <= all.size() && want_stop.empty(); ++end) {
      for (const std::string& stop : stops) {
        if (std::string_view(all).substr(0, end).ends_with(stop) && stop.size() > want_stop.size()) want_stop = stop;
      }
      if (!want_stop.empty()) want = all.substr(0, end - want_stop.size());
    }
    const Outcome seen = outcome(stops, pushes);
    ASSERT_EQ(joined(seen), want);
    ASSERT_EQ(seen.stop, want_stop);
  }
}

TEST(StopMatcher, IsLinearForStopsThatAlmostMatch) {
  const std::string text(1 << 22, 'a');
  EXPECT_EQ(joined(outcome({std::string(1 << 16, 'a') + "b"}, {text})), text);
}

}  // namespace
}  // namespace quire::text
