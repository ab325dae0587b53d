#include "tools/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/config/config_fields.h"

namespace quire::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

CommandLine parse(const std::vector<std::string>& args) {
  Problems problems;
  CommandLine line = parse_command_line(args, problems);
  EXPECT_THAT(problems, IsEmpty());
  return line;
}

Problems problems_of(const std::vector<std::string>& args) {
  Problems problems;
  parse_command_line(args, problems);
  return problems;
}

TEST(CommandLine, ReadsAScenarioAndWhereItsFiguresGo) {
  const CommandLine line = parse({"--scenario", "waste", "--csv", "out.csv"});
  EXPECT_EQ(line.bench.scenario, "waste");
  EXPECT_EQ(line.bench.csv, "out.csv");
  EXPECT_EQ(parse({}).bench.scenario, "");
}

TEST(CommandLine, NamesTheScenariosThereAre) {
  EXPECT_THAT(
      problems_of({"--scenario", "wast"}),
      ElementsAre("--scenario 'wast': expected one of utilisation, waste, max-batch, preemption, policies, prefix"));
  EXPECT_THAT(problems_of({"--csv", "x"}), ElementsAre(HasSubstr("--csv")));
  EXPECT_THAT(problems_of({"--scenario", "waste", "--json"}), ElementsAre(HasSubstr("--json")));
}

TEST(CommandLine, ReadsTheModeOfABenchAndItsFlags) {
  const CommandLine line = parse({"--mode", "compare", "--url", "http://127.0.0.1:1", "--url", "http://127.0.0.1:2",
                                  "--streams", "1,8", "--json"});
  EXPECT_EQ(line.bench.mode, BenchMode::kCompare);
  EXPECT_THAT(line.bench.urls, ElementsAre("http://127.0.0.1:1", "http://127.0.0.1:2"));
  EXPECT_THAT(line.bench.streams, ElementsAre(1u, 8u));
  EXPECT_TRUE(line.bench.json);
  EXPECT_THAT(problems_of({"dir", "--mode", "micro"}), ElementsAre(HasSubstr("leave MODEL out")));
  EXPECT_THAT(parse({"--mode", "step", "dir"}).flags.at("model").values, ElementsAre("dir"));
}

TEST(BenchCommandLine, RefusesNumbersAndShapesThatAreNone) {
  EXPECT_THAT(problems_of({"--runs", "0"}), ElementsAre(HasSubstr("--runs '0'")));
  EXPECT_THAT(problems_of({"--random-shape", "7b"}),
              ElementsAre(HasSubstr("expected 135m, 0.6b, 1b, 1.2b-a0.4b or 1b-mla")));
}

TEST(BenchCommandLine, TheWordBehindAFlagsValueIsTheModel) {
  const CommandLine line = parse({"--block-size", "32", "dir"});
  EXPECT_THAT(line.flags.at("model").values, ElementsAre("dir"));
  EXPECT_THAT(line.flags.at("block-size").values, ElementsAre("32"));
  EXPECT_THAT(parse({"--runs", "3", "dir"}).flags.at("model").values, ElementsAre("dir"));
  EXPECT_THAT(problems_of({"a", "b"}), ElementsAre("unexpected word b: only one MODEL is allowed"));
}

TEST(BenchCommandLine, NamesTheNearestFlagOrTheCommandThatHasIt) {
  EXPECT_THAT(problems_of({"--thread", "2"}), ElementsAre("unknown flag --thread: did you mean --threads?"));
  for (const std::string flag : {"--port", "--max-model-len"}) {
    EXPECT_THAT(problems_of({flag + "=8"}),
                ElementsAre(AllOf(StartsWith("unknown flag " + flag + "=8: it belongs to serve, "),
                                  EndsWith(", not to bench"))));
  }
}

TEST(BenchCommandLine, EveryFieldOfBenchIsInTheHelpAndNoOther) {
  const std::string help = parse({"--help"}).help.value();
  for (const app::Field& field : app::fields()) {
    EXPECT_EQ(help.find(app::environment_of(field) + "]") != std::string::npos, (field.commands & app::kBench) != 0)
        << field.name;
  }
}

TEST(BenchCommandLine, HelpIsThatOfTheCommandThatPeopleType) {
  const std::string help = parse({"--mode", "micro", "--help"}).help.value_or("");
  EXPECT_THAT(help, HasSubstr("Usage: quire bench "));
  for (const char* flag : {"--mode", "--scenario", "--threads", "--json"}) EXPECT_THAT(help, HasSubstr(flag));
}

}  // namespace
}  // namespace quire::tools
