#include "app/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/config/version.h"
#include "tests/support/source_tree.h"

namespace quire::app::command_line_test {
namespace {

using test::source_text;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(CommandLine, TakesTheModelAsAWordOrAFlag) {
  EXPECT_THAT(parse({"serve", "dir", "--port", "1"}).flags.at("model").values, ElementsAre("dir"));
  EXPECT_THAT(parse({"inspect", "--model", "dir"}).flags.at("model").values, ElementsAre("dir"));
  EXPECT_EQ(parse({"serve"}).flags.count("model"), 0u);
}

TEST(CommandLine, ReadsWhatGenerateTakes) {
  const CommandLine line =
      parse({"generate", "dir", "--prompt", "a b", "--max-tokens", "5", "--temperature", "0.5",
             "--top-p",  "1",   "--top-k",  "-1",  "--min-p",      "0", "--seed",        "18446744073709551615",
             "--stop",   "x",   "--stop",   "y z"});
  EXPECT_EQ(line.command, Command::kGenerate);
  EXPECT_EQ(line.generate.prompt, "a b");
  EXPECT_EQ(line.generate.max_tokens, 5u);
  EXPECT_EQ(line.generate.temperature, 0.5f);
  EXPECT_EQ(line.generate.top_k, -1);
  EXPECT_EQ(line.generate.seed, 18446744073709551615u);
  EXPECT_THAT(line.generate.stop, ElementsAre("x", "y z"));
}

TEST(CommandLine, ReadsWhatAKeyIsToBe) {
  const CommandLine line = parse({"key", "--name", "alice", "--admin", "--max-running", "4", "--max-queued", "5",
                                  "--tokens-per-minute", "4294967295", "--tenant", "team", "--file", "keys"});
  EXPECT_EQ(line.command, Command::kKey);
  EXPECT_EQ(line.key.name, "alice");
  EXPECT_EQ(line.key.role, api::keys::Role::kAdmin);
  EXPECT_EQ(line.key.limits.max_running, 4u);
  EXPECT_EQ(line.key.limits.max_queued, 5u);
  EXPECT_EQ(line.key.limits.tokens_per_minute, 4294967295u);
  EXPECT_EQ(line.key.tenant, "team");
  EXPECT_EQ(line.key.file, "keys");
  EXPECT_EQ(parse({"key", "--name", "a"}).key.role, api::keys::Role::kUser);
  EXPECT_EQ(parse({"key", "--name", "a", "--role", "monitor"}).key.role, api::keys::Role::kMonitor);
}

TEST(CommandLine, RefusesKeysThatCannotBe) {
  EXPECT_THAT(problems_of({"key"}), ElementsAre(HasSubstr("--name")));
  EXPECT_THAT(problems_of({"key", "--name", "a b", "--tenant", "c/d", "--role", "root", "--max-running", "0",
                           "--max-queued", "x", "--tokens-per-minute", "4294967296"}),
              ::testing::SizeIs(6));
  EXPECT_THAT(problems_of({"key", "--name", "a", "--role", "user", "--admin"}),
              ElementsAre("--admin and --role differ: leave one of them out"));
  EXPECT_THAT(problems_of({"key", "--name", "a", "b"}), ElementsAre(HasSubstr("unexpected word b")));
}

TEST(CommandLine, RefusesNumbersThatAreNone) {
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--temperature", "nan", "--top-p", "0", "--min-p", "1.01",
                           "--max-tokens", "0", "--seed", "-1", "--top-k", "1x"}),
              ::testing::SizeIs(6));
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--temperature", "inf"}), ::testing::SizeIs(1));
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--seed", "18446744073709551616"}),
              ElementsAre("--seed '18446744073709551616': expected a number in 0..18446744073709551615"));
}

TEST(CommandLine, LeavesWhatFollowsBenchUnread) {
  const CommandLine line = parse({"bench", "--mode", "nothing", "dir", "--help", "--port", "x"});
  EXPECT_EQ(line.command, Command::kBench);
  EXPECT_THAT(line.bench_args, ElementsAre("--mode", "nothing", "dir", "--help", "--port", "x"));
  EXPECT_THAT(parse({"bench"}).bench_args, IsEmpty());
  EXPECT_THAT(problems_of({"--threads", "2", "bench", "--runs", "3"}),
              ElementsAre(HasSubstr("a command is required before --threads")));
}

TEST(CommandLine, NeedsAPromptToGenerate) {
  EXPECT_THAT(problems_of({"generate"}), ElementsAre(HasSubstr("--prompt")));
}

TEST(CommandLine, NamesTheNearestFlagOrCommand) {
  EXPECT_THAT(problems_of({"serve", "--prot", "80"}), ElementsAre("unknown flag --prot: did you mean --port?"));
  EXPECT_THAT(problems_of({"serve", "--max_num_seq=80"}),
              ElementsAre("unknown flag --max_num_seq=80: did you mean --max-num-seqs?"));
  EXPECT_THAT(problems_of({"serv"}), ElementsAre("unknown command serv: did you mean serve?"));
  EXPECT_THAT(problems_of({}), ElementsAre(HasSubstr("a command is required")));
  EXPECT_THAT(problems_of({"serve", "a", "b"}), ElementsAre("unexpected word b: only one MODEL is allowed"));
}

TEST(CommandLine, TheWordBehindAFlagsValueIsTheModel) {
  for (const char* command : {"serve", "inspect"}) {
    const CommandLine line = parse({command, "--block-size", "32", "dir"});
    EXPECT_THAT(line.flags.at("model").values, ElementsAre("dir")) << command;
    EXPECT_THAT(line.flags.at("block-size").values, ElementsAre("32")) << command;
  }
}

TEST(CommandLine, NamesTheCommandThatHasAFlag) {
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--max-num-batched-tokens", "8"}),
              ElementsAre("unknown flag --max-num-batched-tokens: it belongs to serve, not to generate"));
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--max_model_len", "8"}),
              ElementsAre("unknown flag --max_model_len: did you mean --max-model-len?"));
  EXPECT_THAT(problems_of({"--port", "80"}),
              ElementsAre("a command is required before --port: serve, generate, bench, models, inspect, "
                          "pull, list, rm, build-datastore or key"));
}

TEST(CommandLine, TakesUnderscoresAndValuesThatBeginWithADash) {
  EXPECT_THAT(parse({"serve", "--max_model_len", "-1"}).flags.at("max-model-len").values, ElementsAre("-1"));
}

TEST(CommandLine, APlanIsAPlainSwitchOfServe) {
  EXPECT_TRUE(parse({"serve", "dir", "--plan"}).serve.plan);
  EXPECT_TRUE(parse({"serve", "--plan", "dir", "--port", "1"}).serve.plan);
  EXPECT_THAT(parse({"serve", "--plan", "dir"}).flags.at("model").values, ElementsAre("dir"));
  EXPECT_FALSE(parse({"serve", "dir"}).serve.plan);
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--plan"}), ElementsAre(HasSubstr("unknown flag --plan")));
}

TEST(CommandLine, InspectsAServerOrAModel) {
  EXPECT_EQ(parse({"inspect", "--url", "http://h"}).inspect.url, "http://h");
  EXPECT_EQ(parse({"inspect", "dir"}).inspect.url, "");
  EXPECT_THAT(problems_of({"inspect", "dir", "--url", "http://h"}), ElementsAre(HasSubstr("leave MODEL out")));
}

TEST(CommandLine, PrintsHelpAndVersion) {
  EXPECT_EQ(parse({"--version"}).text, "quire " + std::string(kVersion) + "\n");
  const std::string help = parse({"--help"}).text;
  for (const char* command : {"serve", "generate", "bench", "inspect"}) EXPECT_THAT(help, HasSubstr(command));
  EXPECT_THAT(parse({"generate", "--help"}).text, HasSubstr("--temperature"));
}

TEST(CommandLine, TheVersionIsTheProjects) {
  EXPECT_THAT(source_text("CMakeLists.txt"), HasSubstr("project(quire VERSION " + std::string(kVersion) + " "));
}

}  // namespace
}  // namespace quire::app::command_line_test
