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

TEST(CommandLine, TakesOnePromptFromAFlagAFileOrASecondWord) {
  EXPECT_EQ(parse({"generate", "model", "--prompt", "x"}).generate.prompt, "x");
  EXPECT_EQ(parse({"generate", "model", "a story"}).generate.prompt, "a story");
  EXPECT_EQ(parse({"generate", "model", "--prompt-file", "f"}).generate.prompt_file, "f");
  EXPECT_EQ(parse({"generate", "model"}).generate.prompt, "");  // standard input
  EXPECT_THAT(problems_of({"generate", "model", "y", "--prompt", "x"}),
              ElementsAre(HasSubstr("--prompt and y: one prompt is expected")));
  EXPECT_THAT(problems_of({"generate", "--prompt-file", "f", "--prompt", "x"}), ElementsAre(HasSubstr("one prompt")));
  EXPECT_THAT(problems_of({"generate", "a", "b", "c"}), ElementsAre(HasSubstr("unexpected word b")));
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--raw", "--system", "s"}), ElementsAre(HasSubstr("--raw")));
}

TEST(CommandLine, PsAndStopTakeAnIdAndTheServersUrl) {
  const CommandLine all = parse({"ps"});
  EXPECT_EQ(all.command, Command::kPs);
  EXPECT_EQ(all.operate.id, "");
  EXPECT_EQ(all.operate.url, "http://127.0.0.1:8000");
  const CommandLine one = parse({"ps", "--json", "--url", "https://h/v1", "--cacert", "f", "r1", "--api-key", "k"});
  EXPECT_EQ(one.operate.id, "r1");
  EXPECT_EQ(one.operate.url, "https://h/v1");
  EXPECT_EQ(one.operate.cacert, "f");
  EXPECT_TRUE(one.operate.json);
  EXPECT_THAT(one.flags.at("api-key").values, ElementsAre("k"));
  const CommandLine stop = parse({"stop", "r1"});
  EXPECT_EQ(stop.command, Command::kStop);
  EXPECT_EQ(stop.operate.id, "r1");
  EXPECT_THAT(problems_of({"stop"}), ElementsAre(HasSubstr("ID")));
  EXPECT_THAT(problems_of({"stop", "r1", "r2"}), ElementsAre(HasSubstr("unexpected word r2")));
  EXPECT_THAT(problems_of({"ps", "--cacert", "f"}), ElementsAre(HasSubstr("--cacert is for an https:// URL")));
}

TEST(CommandLine, DoctorTakesAModelOrNone) {
  EXPECT_EQ(parse({"doctor"}).command, Command::kDoctor);
  EXPECT_FALSE(parse({"doctor", "--json", "--port", "9000"}).doctor.has_model);
  EXPECT_TRUE(parse({"doctor", "--json"}).doctor.json);
  EXPECT_TRUE(parse({"doctor", "dir"}).doctor.has_model);
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

TEST(CommandLine, AFlagOfAnotherProgramIsTranslatedByServeAndNamedByOthers) {
  EXPECT_THAT(parse({"serve", "-m", "a.gguf", "-c", "4096"}).flags.at("max-model-len").values, ElementsAre("4096"));
  EXPECT_THAT(parse({"serve", "-m", "a.gguf", "--metrics"}).notes, ElementsAre(HasSubstr("--metrics")));
  EXPECT_THAT(problems_of({"generate", "a.gguf", "x", "-c", "8"}),
              ElementsAre("unknown flag -c: did you mean --max-model-len?"));
  EXPECT_THAT(problems_of({"generate", "a.gguf", "--temp=1"}),
              ElementsAre("unknown flag --temp=1: did you mean --temperature?"));
  EXPECT_THAT(problems_of({"inspect", "a.gguf", "--no-mmap"}),
              ElementsAre("unknown flag --no-mmap: only serve reads this flag of vLLM or llama.cpp"));
  EXPECT_THAT(problems_of({"serve", "--ctx-sise", "8"}),
              ElementsAre("unknown flag --ctx-sise: did you mean --ctx-size?"));
}

TEST(CommandLine, TheNearestFlagIsOneOfTheCommand) {
  EXPECT_THAT(problems_of({"generate", "a", "--temprature=1"}),
              ElementsAre("unknown flag --temprature=1: did you mean --temperature?"));
  EXPECT_THAT(problems_of({"key", "--name", "a", "--rolle=user"}),
              ElementsAre("unknown flag --rolle=user: did you mean --role?"));
}

TEST(CommandLine, OfAFlagGivenTwiceTheLastCounts) {
  EXPECT_THAT(parse({"serve", "--port", "1", "--port", "2"}).flags.at("port").values, ElementsAre("2"));
  EXPECT_THAT(parse({"serve", "-t", "1", "--threads", "2"}).flags.at("threads").values, ElementsAre("2"));
}

TEST(CommandLine, AnAbbreviatedFlagIsUnknown) {
  EXPECT_THAT(problems_of({"serve", "--max-model", "8"}),
              ElementsAre("unknown flag --max-model: did you mean --max-model-len?"));
  EXPECT_THAT(problems_of({"serve", "--allowed", "8"}), ElementsAre("unknown flag --allowed"));  // of several
}

TEST(CommandLine, CompletionTakesTheNameOfAShell) {
  EXPECT_THAT(parse({"completion", "bash"}).text, HasSubstr("complete -F _quire quire"));
  EXPECT_THAT(problems_of({"completion", "bsh"}), ElementsAre("completion bsh: did you mean bash?"));
  EXPECT_THAT(problems_of({"completion"}), ElementsAre(HasSubstr("expected bash, zsh or fish")));
  EXPECT_THAT(problems_of({"completion", "bash", "x"}), ElementsAre(HasSubstr("unexpected word x")));
}

TEST(CommandLine, NamesTheCommandThatHasAFlag) {
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--max-num-batched-tokens", "8"}),
              ElementsAre("unknown flag --max-num-batched-tokens: it belongs to serve, not to generate"));
  EXPECT_THAT(problems_of({"generate", "--prompt", "x", "--max_model_len", "8"}),
              ElementsAre("unknown flag --max_model_len: did you mean --max-model-len?"));
  EXPECT_THAT(problems_of({"--port", "80"}),
              ElementsAre(HasSubstr("a command is required before --port: serve, chat, generate, ")));
}

TEST(CommandLine, AnEmptyValueTakesNoOtherWord) {
  const CommandLine line = parse({"serve", "--api-key=", "--served-model-name=", "--port", "1", "dir"});
  EXPECT_THAT(line.flags.at("api-key").values, ElementsAre(""));
  EXPECT_THAT(line.flags.at("port").values, ElementsAre("1"));
  EXPECT_THAT(line.flags.at("model").values, ElementsAre("dir"));
  EXPECT_EQ(parse({"generate", "dir", "--system=", "--prompt", "a"}).generate.prompt, "a");
  EXPECT_THAT(problems_of({"key", "--name=", "--admin"}), ElementsAre(HasSubstr("--name ''")));
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
  EXPECT_EQ(parse({"--version"}).text, version_text() + "\n");
  EXPECT_THAT(version_text(), ::testing::StartsWith("quire " + std::string(kVersion)));
  EXPECT_EQ(parse({"version"}).text, parse({"--version"}).text);
  EXPECT_EQ(parse({"help"}).text, parse({"--help"}).text);
  EXPECT_EQ(parse({"help", "serve"}).text, parse({"serve", "--help"}).text);
  const std::string help = parse({"--help"}).text;
  for (const char* command : {"serve", "generate", "bench", "inspect"}) EXPECT_THAT(help, HasSubstr(command));
  EXPECT_THAT(parse({"generate", "--help"}).text, HasSubstr("--temperature"));
}

TEST(CommandLine, TheVersionIsTheProjects) {
  EXPECT_THAT(source_text("CMakeLists.txt"), HasSubstr("project(quire VERSION " + std::string(kVersion) + " "));
}

}  // namespace
}  // namespace quire::app::command_line_test
