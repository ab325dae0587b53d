#include "tools/common/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/scenario/scenario.h"

namespace quire::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::pair<std::string_view, std::string>>;

BenchOptions read(const Words& words, Problems& problems, bool json = false) {
  TypedBenchFlags typed(bench_flags().size());
  for (const auto& [name, value] : words) {
    for (std::size_t i = 0; i < typed.size(); ++i) {
      if (bench_flags()[i].name == name) typed[i].push_back(value);
    }
  }
  return read_bench_options(typed, json, problems);
}

BenchOptions good(const Words& words) {
  Problems problems;
  const BenchOptions options = read(words, problems);
  EXPECT_THAT(problems, IsEmpty());
  return options;
}

Problems problems_of(const Words& words, bool json = false) {
  Problems problems;
  read(words, problems, json);
  return problems;
}

Words comparing(const Words& more = {}) {
  Words words = {{"--mode", "compare"}, {"--url", "http://127.0.0.1:1"}, {"--url", "http://[::1]:2/v"}};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(BenchOptions, WithoutFlagsIsTheRunner) {
  EXPECT_EQ(good({}).mode, BenchMode::kRunner);
  EXPECT_EQ(good({}).runs, 5u);
}

TEST(BenchOptions, KnowsEveryModeByName) {
  EXPECT_EQ(good({{"--mode", "runner"}}).mode, BenchMode::kRunner);
  EXPECT_EQ(good({{"--mode", "micro"}}).mode, BenchMode::kMicro);
  EXPECT_EQ(good({{"--mode", "step"}}).mode, BenchMode::kStep);
  EXPECT_EQ(good({{"--mode", "profile"}}).mode, BenchMode::kProfile);
  EXPECT_EQ(good({{"--mode", "serve"}}).mode, BenchMode::kServe);
  EXPECT_EQ(good({{"--mode", "speculate"}}).mode, BenchMode::kSpeculate);
  EXPECT_EQ(good(comparing()).mode, BenchMode::kCompare);
  EXPECT_THAT(problems_of({{"--mode", "stop"}}),
              ElementsAre("--mode 'stop': expected one of runner, micro, step, profile, serve, compare, speculate"));
}

TEST(BenchOptions, RefusesNumbersJustOutsideTheirRange) {
  EXPECT_EQ(good({{"--runs", "1"}}).runs, 1u);
  EXPECT_EQ(good({{"--runs", "1000"}}).runs, 1000u);
  for (const char* runs : {"0", "1001", "3.5", "-3", "three"}) {
    EXPECT_THAT(problems_of({{"--runs", runs}}), ElementsAre(HasSubstr("expected a number in 1..1000"))) << runs;
  }
  const auto streams = [](const char* text) { return good({{"--mode", "serve"}, {"--streams", text}}).streams; };
  EXPECT_THAT(streams("1"), ElementsAre(1u));
  EXPECT_THAT(streams("4096,1"), ElementsAre(4096u, 1u));
  for (const char* text : {"0", "4097", "1,", ",1", "1;2", "1, 2"}) {
    EXPECT_THAT(problems_of({{"--mode", "serve"}, {"--streams", text}}), ElementsAre(HasSubstr("--streams"))) << text;
  }
  const auto micro = [](const char* text) { return Words{{"--mode", "micro"}, {"--working-set", text}}; };
  EXPECT_EQ(good(micro("1MiB")).working_set_bytes, 1u << 20);
  EXPECT_EQ(good(micro("64GiB")).working_set_bytes, std::uint64_t{64} << 30);
  for (const char* text : {"1048575", "65GiB", "much"}) EXPECT_EQ(problems_of(micro(text)).size(), 1u) << text;
}

TEST(BenchOptions, SharesNoMoreTokensThanThePromptHas) {
  const auto words = [](const char* shared) {
    return Words{{"--mode", "serve"}, {"--prompt-tokens", "100"}, {"--shared-tokens", shared}};
  };
  EXPECT_EQ(good(words("99")).shared_tokens, 99u);
  EXPECT_EQ(good(words("100")).shared_tokens, 100u);
  EXPECT_THAT(problems_of(words("101")), ElementsAre(HasSubstr("expected a number in 0..100")));
}

TEST(BenchOptions, RefusesFlagsThatTheModeWouldNotLookAt) {
  EXPECT_THAT(problems_of({{"--streams", "8"}}),
              ElementsAre("--streams: only for --mode serve and compare and speculate"));
  EXPECT_THAT(problems_of({{"--mode", "step"}, {"--working-set", "1MiB"}}),
              ElementsAre("--working-set: only for --mode micro"));
  EXPECT_THAT(problems_of({{"--mode", "serve"}, {"--url", "http://127.0.0.1:1"}}),
              ElementsAre("--url: only for --mode compare"));
  EXPECT_THAT(problems_of(comparing({{"--random-shape", "135m"}})), ElementsAre(HasSubstr("--random-shape")));
}

TEST(BenchOptions, AScenarioIsNoMode) {
  EXPECT_EQ(good({{"--scenario", "waste"}, {"--csv", "x"}, {"--runs", "7"}}).scenario, "waste");
  EXPECT_THAT(problems_of({{"--scenario", "waste"}, {"--mode", "step"}}), ElementsAre(HasSubstr("cannot be combined")));
  EXPECT_THAT(problems_of({{"--mode", "step"}, {"--csv", "x"}}), ElementsAre(HasSubstr("--csv")));
  EXPECT_THAT(problems_of({{"--scenario", "waste"}}, /*json=*/true), ElementsAre(HasSubstr("write CSV")));
}

TEST(BenchOptions, TheHelpNamesTheScenariosThereAre) {
  const auto flag = std::ranges::find(bench_flags(), "--scenario", &BenchFlag::name);
  EXPECT_THAT(std::string(flag->help), HasSubstr(scenario_names()));
}

TEST(BenchOptions, ComparesTwoServersOfThisMachineAndNoOthers) {
  const Words one = {{"--mode", "compare"}, {"--url", "http://127.0.0.1:1"}};
  EXPECT_THAT(problems_of(one), ElementsAre(HasSubstr("needs two servers")));
  EXPECT_THAT(problems_of(comparing({{"--url", "http://localhost:3"}})), ElementsAre(HasSubstr("needs two servers")));
  for (const char* host : {"example.org", "10.0.0.1", "[2001:db8::1]"}) {
    Words words = one;
    words.emplace_back("--url", std::string("http://") + host + ":80");
    EXPECT_THAT(problems_of(words), ElementsAre(HasSubstr("only servers on this machine"))) << host;
  }
  Words wrong = one;
  wrong.emplace_back("--url", "ftp://127.0.0.1");
  EXPECT_THAT(problems_of(wrong), ElementsAre(HasSubstr("expected a URL")));
}

TEST(BenchOptions, ARateTakesThePlaceOfStreams) {
  EXPECT_EQ(good(comparing({{"--rate", "2.5"}})).rate, 2.5);
  EXPECT_THAT(problems_of(comparing({{"--rate", "2"}, {"--streams", "1"}})),
              ElementsAre(HasSubstr("cannot be combined")));
  EXPECT_THAT(problems_of(comparing({{"--rate", "nan"}})), ElementsAre(HasSubstr("--rate")));
}

}  // namespace
}  // namespace quire::tools
