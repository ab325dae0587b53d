#include "app/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/command_line.h"
#include "app/drafting/draft_settings.h"
#include "core/base/start_error.h"
#include "tests/app/config_rig.h"

namespace quire::app::config_test {
namespace {

using ::testing::ElementsAre;
using testing::environment;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::settle;
using testing::TempFile;
using testing::with;

TEST(Config, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const TempFile file("port = 1\nmax-num-seqs = 2\nblock-size = 32\n");
  const std::string port = "QUIRE_PORT=10";
  const std::string seqs = "QUIRE_MAX_NUM_SEQS=20";
  const std::string path = "QUIRE_CONFIG=" + file.path();
  const char* variables[] = {port.c_str(), seqs.c_str(), path.c_str(), nullptr};
  std::vector<std::string> notes;
  const Config config = read_settings({{"port", {"--port", {"100"}}}}, variables, {}, notes);
  EXPECT_EQ(config.port, 100u);
  EXPECT_EQ(config.max_num_seqs, 20u);
  EXPECT_EQ(config.block_size, 32u);
  EXPECT_EQ(config.io_threads, 1u);
}

// A GPU is taken by its name here: nothing is looked for.
TEST(Config, StepsAreAsLargeAsSuitsTheDevice) {
  const auto sizes = [](std::vector<std::string> words) {
    Problems problems;
    words.insert(words.begin(), "serve");
    const Config config = settle(parse_command_line(words, problems).flags, problems);
    EXPECT_THAT(problems, IsEmpty());
    return std::pair(config.max_num_seqs, config.max_num_batched_tokens);
  };
  EXPECT_EQ(sizes({"--device", "cpu"}), std::pair(64u, 512u));
  EXPECT_EQ(sizes({"--device", "cuda"}), std::pair(256u, 2048u));
  EXPECT_EQ(sizes({"--device", "cuda:1", "--max-num-seqs", "auto"}), std::pair(256u, 2048u));
  EXPECT_EQ(sizes({"--device", "cuda", "--max-num-seqs", "7"}), std::pair(7u, 2048u));
  for (const std::uint32_t rows : {63u, 64u, 65u, 255u, 256u, 257u}) {
    const std::string text = std::to_string(rows);
    EXPECT_EQ(sizes({"--device", "cuda", "--max-num-batched-tokens", text}),
              std::pair(std::clamp(rows, 64u, 256u), rows));
    EXPECT_EQ(sizes({"--device", "cpu", "--max-num-batched-tokens", text}), std::pair(64u, rows));
  }
  EXPECT_EQ(sizes({"--device", "cuda", "--max-num-seqs", "3000"}), std::pair(3000u, 2048u)) << "round-robin";
}

TEST(Config, TheLastOfTwoEqualFlagsWins) {
  Problems problems;
  EXPECT_EQ(settle(parse_command_line({"serve", "--port", "1", "--port=2"}, problems).flags, problems).port, 2u);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Config, AllProblemsAreReportedTogether) {
  const TempFile file("prot = 1\nhost = 2.5\n[engine]\nx = 1\n");
  const std::string variable = "QUIRE_MAX_NUM_SEQ=4";
  const char* variables[] = {variable.c_str(), nullptr};
  std::vector<std::string> notes;
  try {
    Problems problems = {"one from the command line"};
    read_settings({{"config", {"--config", {file.path()}}}, {"block-size", {"--block-size", {"17"}}}}, variables,
                  problems, notes);
    FAIL() << "no error";
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr("6 problems"));
    EXPECT_THAT(error.what(), HasSubstr("one from the command line"));
    EXPECT_THAT(error.what(), HasSubstr("unknown variable QUIRE_MAX_NUM_SEQ: did you mean QUIRE_MAX_NUM_SEQS?"));
    EXPECT_THAT(error.what(), HasSubstr("unknown key prot: did you mean port?"));
    EXPECT_THAT(error.what(), HasSubstr("host: expected an integer or a string"));
    EXPECT_THAT(error.what(), HasSubstr("unknown key engine"));
    EXPECT_THAT(error.what(), HasSubstr("--block-size 17: expected a multiple of 16"));
  }
}

Layer seqs_and_rows(const char* seqs, const char* rows) {
  return {{"max-num-seqs", {"--max-num-seqs", {seqs}}},
          {"max-num-batched-tokens", {"--max-num-batched-tokens", {rows}}}};
}

TEST(Config, AStepHasARowForEverySequenceOrSixteenForAll) {
  Problems problems;
  for (const auto& [seqs, rows] : {std::pair("15", "15"), {"16", "16"}, {"17", "16"}, {"17", "17"}, {"16384", "16"}}) {
    const bool shared = serves_round_robin(settle(seqs_and_rows(seqs, rows), problems));
    EXPECT_EQ(shared, std::string(seqs) != rows) << seqs << ", " << rows;
  }
  EXPECT_THAT(problems, IsEmpty());
  settle(seqs_and_rows("15", "14"), problems);
  settle(seqs_and_rows("16", "15"), problems);
  EXPECT_THAT(
      problems,
      ElementsAre(HasSubstr("expected at least --max-num-seqs, 15"),
                  HasSubstr("expected at least --max-num-seqs, 16; or at least 16, to serve sequences round-robin")));
}

TEST(Config, NoMoreSequencesThanTheLimit) {
  Problems problems;
  for (const char* seqs : {"16383", "16384", "16385"}) with("max-num-seqs", seqs, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("'16385': expected auto or 1..16384")));
}

TEST(Config, NoDraftsAreMadeWhereSequencesAreServedRoundRobin) {
  Problems problems;
  Layer layer = seqs_and_rows("65", "64");
  for (const char* method : {R"({"method":"none"})", R"({"method":"ngram","num_speculative_tokens":4})"}) {
    layer["speculative-config"] = {"--speculative-config", {method}};
    settle(layer, problems);
  }
  EXPECT_THAT(problems, ElementsAre(HasSubstr("raise --max-num-batched-tokens 64 to at least --max-num-seqs 65")));
  EXPECT_EQ(with_embedded_head(settle(seqs_and_rows("65", "64"), problems)).speculative_config, "");
  EXPECT_NE(with_embedded_head(settle(seqs_and_rows("64", "64"), problems)).speculative_config, "");
}

TEST(Config, RanksAreGpusAndNoMoreThanEight) {
  Problems problems;
  for (const char* ranks : {"0", "1", "8", "9"}) with("tensor-parallel-size", ranks, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("'0': expected 1..8"), HasSubstr("'9': expected 1..8")));
  problems.clear();
  Layer layer;
  layer["device"] = {"--device", {"cpu"}};
  for (const char* ranks : {"1", "2"}) {
    layer["tensor-parallel-size"] = {"--tensor-parallel-size", {ranks}};
    settle(layer, problems);
  }
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--tensor-parallel-size 2: --device cpu supports only 1")));
}

TEST(Config, AnInt4CacheTakesChainsOfDraftTokensOfAnotherCache) {
  const auto problems_of = [](const std::string& speculation, const char* cache) {
    Problems problems;
    Layer layer;
    layer["speculative-config"] = {"--speculative-config", {speculation}};
    layer["kv-cache-dtype"] = {"--kv-cache-dtype", {cache}};
    settle(layer, problems);
    return problems;
  };
  for (const char* method : {"layer_skip", "draft_verify", "magicdec", "triforce"}) {
    const std::string one =
        R"({"method": ")" + std::string(method) + (method == std::string("triforce") ? R"(", "model": "x"})" : "\"}");
    EXPECT_THAT(problems_of(one, "int4"), ElementsAre(HasSubstr(method + std::string(" drafts in the model's own"))));
    EXPECT_THAT(problems_of(one, "int8"), IsEmpty());
  }
  EXPECT_THAT(problems_of(R"({"method": "suffix", "topk": 2})", "int4"), ElementsAre(HasSubstr("topk is 2")));
  EXPECT_THAT(problems_of(R"({"method": "suffix", "topk": 1})", "int4"), IsEmpty());
  EXPECT_THAT(problems_of(R"({"method": "lookahead", "window": 2})", "int4"), ElementsAre(HasSubstr("window is 2")));
  EXPECT_THAT(problems_of(R"({"method": "lookahead", "window": 0})", "int4"), IsEmpty());
}

TEST(Config, SpeculationIsReadAsAWholeAndItsProblemReportedWithTheOthers) {
  Problems problems;
  with("speculative-config", "", problems);
  with("speculative-config", R"({"method":"ngram","num_speculative_tokens":64})", problems);
  EXPECT_THAT(problems, IsEmpty());
  with("speculative-config", R"({"method":"ngram","num_speculative_tokens":65})", problems);
  with("speculative-config", "ngram", problems);
  EXPECT_THAT(problems, ElementsAre("--speculative-config: num_speculative_tokens must be a whole number from 1 to 64",
                                    HasSubstr("--speculative-config: expected a JSON object")));
}

TEST(Config, KvEventsAreReadAsAWholeAndNeedThePrefixCache) {
  Problems problems;
  with("kv-events-config", "", problems);
  with("kv-events-config", R"({"enable_kv_cache_events":true,"hwm":1})", problems);
  EXPECT_THAT(problems, IsEmpty());
  with("kv-events-config", R"({"enable_kv_cache_events":true,"hwm":0})", problems);
  with("kv-events-config", R"({"enabled":true})", problems);
  EXPECT_THAT(problems, ElementsAre("--kv-events-config: hwm must be a whole number from 1 to 10000000",
                                    HasSubstr("--kv-events-config: unknown key enabled")));
  problems.clear();
  Layer layer = {{"kv-events-config", {"--kv-events-config", {R"({"enable_kv_cache_events":true})"}}},
                 {"prefix-caching", {"--prefix-caching", {"off"}}}};
  settle(layer, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("leave --prefix-caching off out")));
  problems.clear();
  layer["kv-events-config"] = {"--kv-events-config", {R"({"enable_kv_cache_events":false})"}};
  settle(layer, problems);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Config, APinnedPrefixNeedsThePrefixCache) {
  Problems problems;
  Layer layer = {{"pin-prefix", {"--pin-prefix", {"a,b"}}}};
  EXPECT_THAT(settle(layer, problems).pin_prefix, ElementsAre("a", "b"));
  EXPECT_THAT(problems, IsEmpty());
  layer["prefix-caching"] = {"--prefix-caching", {"off"}};
  settle(layer, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--pin-prefix: pinned prefixes need the prefix cache")));
}

TEST(Config, SavedCachesNeedThePrefixCache) {
  Problems problems;
  Layer layer = {{"cache-dir", {"--cache-dir", {"/somewhere"}}}};
  settle(layer, problems);
  EXPECT_THAT(problems, IsEmpty());
  layer["prefix-caching"] = {"--prefix-caching", {"off"}};
  settle(layer, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--cache-dir: it saves and loads the prefix cache")));
}

TEST(Config, AKeyNeedsItsCertificate) {
  Problems problems;
  Layer layer = {{"tls-key", {"--tls-key", {"a.key"}}}};
  settle(layer, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--tls-key: --tls-cert is missing")));
  problems.clear();
  layer["tls-cert"] = {"--tls-cert", {"a.crt"}};
  settle(layer, problems);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Config, DebuggingIsAListOfWhatToDo) {
  Problems problems;
  EXPECT_THAT(settle({}, problems).kv_debug, ElementsAre("off"));
  EXPECT_THAT(with("kv-debug", "poison,CHECK,poison", problems).kv_debug, ElementsAre("poison", "check"));
  EXPECT_THAT(problems, IsEmpty());
  with("kv-debug", "check,of", problems);
  with("kv-debug", "check,off", problems);
  EXPECT_THAT(problems, ElementsAre("--kv-debug 'check,of': expected one of off|check|poison|log",
                                    "--kv-debug check,off: off cannot be combined with other values"));
}

TEST(Config, ADeviceIsNamedByItsKindAndNumber) {
  Problems problems;
  for (const char* device : {"auto", "cpu", "cuda", "cuda:3"})
    EXPECT_EQ(with("device", device, problems).device, device);
  EXPECT_THAT(problems, IsEmpty());  // whether it is there is found out when it is asked for
  with("device", "gpu", problems);
  with("device", "cuda:x", problems);
  EXPECT_THAT(problems, ElementsAre("--device gpu: expected auto, cpu, cuda or cuda:N, where N is the device's number",
                                    HasSubstr("--device cuda:x: expected")));
}

TEST(Environment, OnlyWhatIsNearlyASettingIsAProblem) {
  Problems problems;
  std::vector<std::string> notes;
  const Layer layer =
      environment({"PATH=/bin", "QUIRE_BUILD_DIR=/x", "QUIRE_PROT=1", "QUIRE_HOST=h", "QUIRE_ODD"}, problems, notes);
  EXPECT_EQ(layer.size(), 1u);
  EXPECT_THAT(notes, ElementsAre("QUIRE_BUILD_DIR is not a setting of quire and is ignored"));
  EXPECT_THAT(problems, ElementsAre("unknown variable QUIRE_PROT: did you mean QUIRE_PORT?"));
}

TEST(Environment, TheAddressKubernetesPutsThereIsExplained) {
  Problems problems;
  std::vector<std::string> notes;
  environment({"QUIRE_PORT=tcp://10.0.0.1:8000"}, problems, notes);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("enableServiceLinks")));
}

TEST(Environment, TheOtherVariablesOfAServiceAreNoProblem) {
  Problems problems;
  std::vector<std::string> notes;
  environment({"QUIRE_SERVICE_HOST=10.0.0.1", "QUIRE_SERVICE_PORT=80", "QUIRE_SERVICE_PORT_HTTP=80",
               "QUIRE_PORT_80_TCP=tcp://10.0.0.1:80", "QUIRE_PORT_80_TCP_PROTO=tcp", "QUIRE_PORT_80_TCP_PORT=80",
               "QUIRE_PORT_80_TCP_ADDR=10.0.0.1"},
              problems, notes);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(notes, ::testing::SizeIs(7));
}

TEST(File, IsRefusedWithItsLineWhereItIsNoToml) {
  const TempFile file("port = 1\nhost = \n");
  Problems problems;
  read_file(file.path(), problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr(file.path() + ":2: ")));
}

TEST(File, IsMissedByName) {
  Problems problems;
  read_file("/nonexistent/quire.toml", problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("/nonexistent/quire.toml")));
}

TEST(File, IsNoDirectory) {
  Problems problems;
  read_file("/", problems);
  EXPECT_THAT(problems, ElementsAre("--config /: this is a directory, not a file"));
}

TEST(File, TakesSwitchesAsBooleans) {
  for (const char* value : {"true", "false"}) {
    const TempFile file(std::string("allow-http-hub = ") + value + "\n");
    Problems problems;
    const Config config = settle(read_file(file.path(), problems), problems);
    EXPECT_THAT(problems, IsEmpty());
    EXPECT_EQ(config.allow_http_hub, value == std::string("true") ? "on" : "off");
  }
}

TEST(File, AKeyWithADashAndWithAnUnderscoreIsOneKey) {
  const TempFile file("max-num-seqs = 1\nmax_num_seqs = 2\n");
  Problems problems;
  read_file(file.path(), problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("set twice")));
}

TEST(File, TakesListsAndNumbers) {
  const TempFile file("served-model-name = [\"a\", \"b\"]\nport = 9000\ndrain-timeout = \"5s\"\n");
  Problems problems;
  const Config config = settle(read_file(file.path(), problems), problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(config.served_model_name, ElementsAre("a", "b"));
  EXPECT_EQ(config.port, 9000u);
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(5));
}

TEST(File, CannotNameAnotherFile) {
  const TempFile file("config = \"x\"\n");
  Problems problems;
  read_file(file.path(), problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("cannot name another")));
}

}  // namespace
}  // namespace quire::app::config_test
