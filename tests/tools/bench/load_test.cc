#include "tools/bench/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/bench/transcript.h"

namespace quire::tools {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;
using enum Answer::Verdict;

// ---- prompts

TEST(LoadPrompt, IsTheSameForEveryServerAndDifferentForEveryRequest) {
  const PromptShape shape{.tokens = 20, .shared_tokens = 0, .vocab = 1000};
  EXPECT_EQ(load_prompt(shape, 3, 1), load_prompt(shape, 3, 1));
  EXPECT_NE(load_prompt(shape, 3, 1), load_prompt(shape, 3, 2));
  EXPECT_NE(load_prompt(shape, 3, 1), load_prompt(shape, 4, 1));
  EXPECT_EQ(load_prompt(shape, 3, 1).size(), 20u);
  EXPECT_THAT(load_prompt({.tokens = 500, .shared_tokens = 250, .vocab = 5}, 1, 1), Each(Lt(5)));
}

TEST(LoadPrompt, BeginsAlikeInOneMeasurementAndNotInTheNext) {
  const PromptShape shape{.tokens = 20, .shared_tokens = 12, .vocab = 1000};
  const auto start = [&](std::uint64_t round, std::uint32_t index) {
    auto prompt = load_prompt(shape, round, index);
    prompt.resize(12);
    return prompt;
  };
  EXPECT_EQ(start(7, 0), start(7, 9));
  EXPECT_NE(start(7, 0), start(8, 0));
  EXPECT_NE(load_prompt(shape, 7, 0)[12], load_prompt(shape, 7, 9)[12]);
}

TEST(NumRequests, IsOneAStreamAndFourAtLeast) {
  BenchOptions options;
  EXPECT_EQ(num_requests(options, 3), 4u);
  EXPECT_EQ(num_requests(options, 4), 4u);
  EXPECT_EQ(num_requests(options, 5), 5u);
  options.requests = 2;
  EXPECT_EQ(num_requests(options, 5), 2u);
}

// ---- figures

Answer good_answer(double ttft_s, std::vector<double> gaps_s) {
  Answer answer;
  answer.verdict = kGood;
  answer.tokens = static_cast<std::uint32_t>(gaps_s.size()) + 1;
  answer.ttft_s = ttft_s;
  answer.gaps_s = std::move(gaps_s);
  return answer;
}

TEST(LoadFigures, CountTokensOfGoodAnswersOverTheWholeTime) {
  Answer failed = good_answer(9, {9});
  failed.verdict = kFailed;
  Answer wrong = good_answer(9, {9});
  wrong.verdict = kWrong;
  const LoadFigures figures = figures_of(
      {.wall_s = 2, .client_cpu_s = 1, .answers = {good_answer(1, {0.1, 0.2}), good_answer(3, {0.3}), failed, wrong}},
      false);
  EXPECT_DOUBLE_EQ(figures.tokens_per_s, 2.5);
  EXPECT_EQ(figures.ttft_p50_s, 1);
  EXPECT_EQ(figures.ttft_p99_s, 3);
  EXPECT_EQ(figures.gap_p50_s, 0.2);
  EXPECT_EQ(figures.gap_p99_s, 0.3);
  EXPECT_EQ(figures.client_cpu, 0.5);
  EXPECT_EQ(figures.requests, 4u);
  EXPECT_EQ(figures.failed, 1u);
  EXPECT_EQ(figures.wrong, 1u);
}

TEST(LoadFigures, LeaveTheFirstRequestApartWhereTheOthersShareItsPrefix) {
  const Measurement measurement{.wall_s = 1, .client_cpu_s = 0, .answers = {good_answer(8, {}), good_answer(1, {})}};
  EXPECT_EQ(figures_of(measurement, true).first_ttft_s, 8);
  EXPECT_EQ(figures_of(measurement, true).ttft_p99_s, 1);
  EXPECT_EQ(figures_of(measurement, false).ttft_p99_s, 8);
}

TEST(LoadFigures, OfNothingAreZero) {
  const LoadFigures figures = figures_of({.wall_s = 1, .client_cpu_s = 0, .answers = {Answer{}}}, false);
  EXPECT_EQ(figures.tokens_per_s, 0);
  EXPECT_EQ(figures.gap_p99_s, 0);
  EXPECT_EQ(figures.failed, 1u);
}

TEST(LoadFigures, AreMediansOfMeasurementsAndSumsOfCounts) {
  std::vector<LoadFigures> all(3);
  all[0].tokens_per_s = 5;
  all[1].tokens_per_s = 1;
  all[2].tokens_per_s = 3;
  all[1].wrong = 2;
  all[2].wrong = 1;
  all[0].failed = 4;
  EXPECT_EQ(median_of(all).tokens_per_s, 3);
  EXPECT_EQ(median_of(all).wrong, 3u);
  EXPECT_EQ(median_of(all).failed, 4u);
}

// ---- transcripts

constexpr const char* kFirst = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n";
constexpr const char* kHalf = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":null}]}\n\n";
constexpr const char* kLast = "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n";
constexpr const char* kEnd = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\r\n\r\n";
constexpr const char* kDone = "data: [DONE]\n\n";

// Each part came alone, a second after the one before; it was sent at 10 s.
Transcript transcript(const std::vector<std::string>& parts) {
  Transcript out;
  out.code = 200;
  out.sent_s = 10;
  for (const std::string& part : parts) {
    out.body += part;
    out.reads.emplace_back(out.body.size(), 10.0 + static_cast<double>(out.reads.size()) + 1);
  }
  return out;
}

TEST(ReadAnswer, TakesTheTimesAtWhichEventsWereWhole) {
  const Answer answer = read_answer(transcript({kFirst, kHalf, kLast, kDone}), 3);
  EXPECT_EQ(answer.verdict, kGood) << answer.why;
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.tokens, 3u);
  EXPECT_EQ(answer.ttft_s, 1);
  EXPECT_THAT(answer.gaps_s, ElementsAre(1, 1));
}

TEST(ReadAnswer, AnEventInTwoReadsIsThereWithTheSecond) {
  const std::string first = kFirst;
  const Answer answer = read_answer(transcript({first.substr(0, 20), first.substr(20), std::string(kLast) + kDone}), 2);
  EXPECT_EQ(answer.verdict, kGood) << answer.why;
  EXPECT_EQ(answer.ttft_s, 2);
  EXPECT_THAT(answer.gaps_s, ElementsAre(1));
}

TEST(ReadAnswer, AnEndWithoutTextIsNoToken) {
  EXPECT_EQ(read_answer(transcript({kFirst, kEnd, kDone}), 1).verdict, kGood);
  EXPECT_EQ(read_answer(transcript({kFirst, kEnd, kDone}), 2).verdict, kWrong);
}

TEST(ReadAnswer, BelievesTheServersCountOfTokens) {
  const std::string usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":5}}\n\n";
  EXPECT_EQ(read_answer(transcript({kFirst, kEnd, usage, kDone}), 5).verdict, kGood);
  EXPECT_EQ(read_answer(transcript({kFirst, kEnd, usage, kDone}), 5).tokens, 5u);
  EXPECT_THAT(read_answer(transcript({kFirst, kEnd, usage, kDone}), 4).why, HasSubstr("5 tokens instead of 4"));
}

TEST(ReadAnswer, ReportsWhatIsWrongFromWhatFailed) {
  EXPECT_EQ(read_answer(transcript({kFirst, kLast}), 2).verdict, kWrong);  // no [DONE]
  EXPECT_EQ(read_answer(transcript({kDone}), 1).verdict, kWrong);
  EXPECT_EQ(read_answer(transcript({kFirst, "data: {\"error\":{}}\n\n", kDone}), 1).verdict, kWrong);
  EXPECT_EQ(read_answer(transcript({kFirst, "data: {\"cho\n\n", kDone}), 1).verdict, kWrong);
  const std::string stop = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n";
  EXPECT_THAT(read_answer(transcript({stop, kDone}), 1).why, HasSubstr("ended by 'stop'"));

  Transcript refused = transcript({"{\"error\":\"queue full\"}"});
  refused.code = 429;
  EXPECT_EQ(read_answer(refused, 1).verdict, kFailed);
  EXPECT_THAT(read_answer(refused, 1).why, HasSubstr("answered 429"));
  Transcript broken = transcript({kFirst, kLast, kDone});
  broken.error = "end of stream";
  EXPECT_EQ(read_answer(broken, 2).verdict, kFailed);
}

}  // namespace
}  // namespace quire::tools
