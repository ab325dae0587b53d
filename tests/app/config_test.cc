#include "app/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "app/command_line.h"
#include "app/config_fields.h"
#include "app/draft_settings.h"
#include "app/units.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TempFile {
 public:
  explicit TempFile(const std::string& text) : path_(std::filesystem::temp_directory_path() / name()) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  static std::string name() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::string("quire_") + test->name() + "_" + std::to_string(::getpid()) + ".toml";
  }
  std::filesystem::path path_;
};

// A value that the field takes and that is not its default.
std::string some_value(const Field& field) {
  const std::string kind = kind_of(field);
  if (kind == "choice" || (kind == "list" && !field.range.empty()))
    return range_text(field).substr(range_text(field).rfind('|') + 1);
  if (kind == "text" || kind == "list") return "something";
  return std::string(field.range.substr(field.range.find("..") + 2));
}

// What a field holds, as text that two configurations can be compared by.
std::string held(const Field& field, const Config& config) {
  struct Text {
    const Config& config;
    std::string operator()(std::string Config::*m) const { return config.*m; }
    std::string operator()(std::vector<std::string> Config::*m) const {
      std::string out;
      for (const std::string& one : config.*m) out += one + ",";
      return out;
    }
    std::string operator()(std::uint32_t Config::*m) const { return std::to_string(config.*m); }
    std::string operator()(std::optional<std::uint32_t> Config::*m) const {
      return config.*m ? std::to_string(*(config.*m)) : "auto";
    }
    std::string operator()(Bytes Config::*m) const { return std::to_string((config.*m).value); }
    std::string operator()(std::optional<Bytes> Config::*m) const {
      return config.*m ? std::to_string((config.*m)->value) : "auto";
    }
    std::string operator()(Duration Config::*m) const { return std::to_string((config.*m).count()); }
  };
  return std::visit(Text{config}, field.member);
}

Config settle(const Layer& layer, Problems& problems) { return resolve(std::span(&layer, 1), problems); }

Config with(std::string_view name, const std::string& value, Problems& problems) {
  return settle({{std::string(name), {"--" + std::string(name), {value}}}}, problems);
}

Layer environment(std::vector<std::string> entries, Problems& problems, std::vector<std::string>& notes) {
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  return read_environment(pointers.data(), problems, notes);
}

TEST(Fields, EveryDefaultIsTakenAndTogetherTheyHaveNoProblem) {
  Problems problems;
  const Config config = settle({}, problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(config.host, "127.0.0.1");
  EXPECT_EQ(config.port, 8000u);
  EXPECT_EQ(config.max_model_len, std::nullopt);
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(30));
}

TEST(Fields, AreNamedOnceAndExplained) {
  std::vector<std::string_view> seen;
  for (const Field& field : fields()) {
    EXPECT_THAT(seen, ::testing::Not(::testing::Contains(field.name)));
    seen.push_back(field.name);
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_EQ(field.name.find('_'), std::string_view::npos);
    EXPECT_NE(field.commands, 0u);
    const bool auto_is_a_word =
        kind_of(field) == "choice" || field.name == "device";  // one of its own values, not the absence of any
    EXPECT_EQ(field.is_optional(), field.fallback == "auto" && !auto_is_a_word) << field.name;
  }
}

TEST(Fields, FlagEnvironmentAndFileReachTheSameMember) {
  for (const Field& field : fields()) {
    const std::string value = some_value(field);
    Problems problems;
    std::vector<std::string> notes;
    const Config by_flag =
        settle(parse_command_line({"serve", flag_of(field) + "=" + value}, problems).flags, problems);
    const Config by_environment = settle(environment({environment_of(field) + "=" + value}, problems, notes), problems);
    EXPECT_EQ(held(field, by_flag), held(field, by_environment)) << field.name;
    EXPECT_NE(held(field, by_flag), held(field, settle({}, problems))) << field.name;
    if (field.name == "config") continue;
    for (const char separator : {'-', '_'}) {
      std::string key(field.name);
      std::replace(key.begin(), key.end(), '-', separator);
      const TempFile file(key + " = \"" + value + "\"\n");
      const Config by_file = settle(read_file(file.path(), problems), problems);
      EXPECT_EQ(held(field, by_flag), held(field, by_file)) << key;
    }
    EXPECT_THAT(notes, IsEmpty());
  }
}

TEST(Fields, AreAllInTheHelpOfTheirCommands) {
  constexpr std::pair<CommandSet, const char*> kCommands[] = {{kServe, "serve"},
                                                              {kGenerate, "generate"},
                                                              {kBench, "bench"},
                                                              {kInspect, "inspect"},
                                                              {kBuildDatastore, "build-datastore"}};
  for (const auto& [bit, name] : kCommands) {
    Problems problems;
    const CommandLine line = parse_command_line({name, "--help"}, problems);
    ASSERT_EQ(line.command, Command::kPrint);
    for (const Field& field : fields()) {
      EXPECT_EQ(line.text.find(environment_of(field) + "]") != std::string::npos, (field.commands & bit) != 0)
          << name << " " << field.name;
    }
  }
}

TEST(Fields, AnErrorDoesNotRepeatASecret) {
  Problems problems;
  const Layer flags = {{"api-key", {"--api-key", {"first-secret,,second-secret"}}}};
  resolve(std::span(&flags, 1), problems);
  EXPECT_THAT(problems, ElementsAre(AllOf(HasSubstr("--api-key"), Not(HasSubstr("secret")))));
}

TEST(Fields, LimitsHoldOnBothSides) {
  for (const Field& field : fields()) {
    const std::string kind = kind_of(field);
    if (kind == "text" || kind == "list" || kind == "choice") continue;
    const bool is_time = kind == "time";
    const auto number = [&](std::string_view text) {
      if (is_time) return static_cast<std::uint64_t>(parse_duration(text).value().count());
      return kind == "size" ? parse_bytes(text).value() : parse_count(text).value();
    };
    const std::size_t dots = field.range.find("..");
    const std::uint64_t low = number(field.range.substr(0, dots));
    const std::uint64_t high = number(field.range.substr(dots + 2));
    const auto takes = [&](std::uint64_t value) {
      Config config;
      const std::string text = std::to_string(value) + (is_time ? "ns" : "");
      return store(field, std::span(&text, 1), config).ok();
    };
    EXPECT_TRUE(takes(low)) << field.name;
    EXPECT_TRUE(takes(low + 1)) << field.name;
    EXPECT_TRUE(takes(high - 1)) << field.name;
    EXPECT_TRUE(takes(high)) << field.name;
    EXPECT_FALSE(takes(high + 1)) << field.name;
    if (low > 0) {
      EXPECT_FALSE(takes(low - 1)) << field.name;
    }
  }
}

TEST(Fields, ChoicesTakeTheOtherWordsAndEitherCase) {
  Problems problems;
  EXPECT_EQ(with("kv-cache-dtype", "BFloat16", problems).kv_cache_dtype, "bf16");
  EXPECT_EQ(with("kv-cache-dtype", "float32", problems).kv_cache_dtype, "f32");
  EXPECT_EQ(with("kv-cache-dtype", "fp8_e4m3", problems).kv_cache_dtype, "fp8");
  EXPECT_EQ(with("kv-cache-dtype", "int8", problems).kv_cache_dtype, "int8");
  EXPECT_EQ(with("dtype", "half", problems).dtype, "f16");
  EXPECT_EQ(with("generation-config", "vllm", problems).generation_config, "none");
  EXPECT_EQ(with("log-level", "WARNING", problems).log_level, "warning");
  EXPECT_THAT(problems, IsEmpty());
  with("kv-cache-dtype", "fp4", problems);
  EXPECT_THAT(problems, ElementsAre("--kv-cache-dtype 'fp4': expected one of auto|f32|bf16|fp8|int8|int4"));
}

TEST(Fields, AutoAndMinusOneLeaveTheChoiceToQuire) {
  Problems problems;
  EXPECT_EQ(with("max-model-len", "auto", problems).max_model_len, std::nullopt);
  EXPECT_EQ(with("max-model-len", "-1", problems).max_model_len, std::nullopt);
  EXPECT_EQ(with("max-model-len", "32k", problems).max_model_len, 32000u);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Fields, ListsTakeCommasAndRepetition) {
  Problems problems;
  const CommandLine line = parse_command_line(
      {"serve", "--served-model-name", "a,b", "--served-model-name=c", "--served-model-name", "a"}, problems);
  EXPECT_THAT(settle(line.flags, problems).served_model_name, ElementsAre("a", "b", "c"));
  EXPECT_THAT(problems, IsEmpty());
}

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

TEST(Config, TheLastOfTwoEqualFlagsWins) {
  Problems problems;
  EXPECT_EQ(settle(parse_command_line({"serve", "--port", "1", "--port=2"}, problems).flags, problems).port, 2u);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Config, AllProblemsAreToldAtOnce) {
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
  EXPECT_THAT(problems, ElementsAre(HasSubstr("expected at least --max-num-seqs, 15"),
                                    HasSubstr("expected at least --max-num-seqs, 16, or 16, with which")));
}

TEST(Config, NoMoreSequencesThanTheLimit) {
  Problems problems;
  for (const char* seqs : {"16383", "16384", "16385"}) with("max-num-seqs", seqs, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("'16385': expected 1..16384")));
}

TEST(Config, NobodyGuessesWhereSequencesAreServedRoundRobin) {
  Problems problems;
  Layer layer = seqs_and_rows("65", "64");
  for (const char* method : {R"({"method":"none"})", R"({"method":"ngram","num_speculative_tokens":4})"}) {
    layer["speculative-config"] = {"--speculative-config", {method}};
    settle(layer, problems);
  }
  EXPECT_THAT(problems, ElementsAre(HasSubstr("there are fewer than --max-num-seqs, 65")));
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
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--tensor-parallel-size 2: with --device cpu there is one")));
}

TEST(Config, SwappingNeedsADeviceWithMemoryOfItsOwn) {
  Problems problems;
  with("swap-space", "0", problems);
  EXPECT_THAT(problems, IsEmpty());
  with("swap-space", "1", problems);
  with("swap-space", "4GiB", problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--swap-space 1 B: on the CPU"), HasSubstr("--swap-space 4.00 GiB")));
}

TEST(Config, SpeculationIsReadAsAWholeAndItsProblemToldWithTheOthers) {
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
  EXPECT_THAT(problems, ElementsAre(HasSubstr("leave out --prefix-caching off")));
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
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--pin-prefix: a pinned prefix is kept by the prefix cache")));
}

TEST(Config, SavedCachesNeedThePrefixCache) {
  Problems problems;
  Layer layer = {{"cache-dir", {"--cache-dir", {"/somewhere"}}}};
  settle(layer, problems);
  EXPECT_THAT(problems, IsEmpty());
  layer["prefix-caching"] = {"--prefix-caching", {"off"}};
  settle(layer, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--cache-dir: what is saved and loaded is the prefix cache")));
}

TEST(Config, AKeyNeedsItsCertificate) {
  Problems problems;
  Layer layer = {{"tls-key", {"--tls-key", {"a.key"}}}};
  settle(layer, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--tls-key: there is no --tls-cert")));
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
                                    "--kv-debug check,off: off, and something else"));
}

TEST(Config, ADeviceIsNamedByItsKindAndNumber) {
  Problems problems;
  for (const char* device : {"auto", "cpu", "cuda", "cuda:3"})
    EXPECT_EQ(with("device", device, problems).device, device);
  EXPECT_THAT(problems, IsEmpty());  // whether it is there is found out when it is asked for
  with("device", "gpu", problems);
  with("device", "cuda:x", problems);
  EXPECT_THAT(problems, ElementsAre("--device gpu: expected auto, cpu, cuda or cuda:N, N the device's number",
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
}  // namespace quire::app
