#include "app/config/config_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "app/command_line.h"
#include "app/config/units.h"
#include "tests/app/config_rig.h"

namespace quire::app::config_fields_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::environment;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::settle;
using testing::TempFile;
using testing::with;

// A value that the field takes and that is not its default.
std::string some_value(const Field& field) {
  const std::string kind = kind_of(field);
  if (kind == "choice" || kind == "switch" || (kind == "list" && !field.range.empty()))
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
    EXPECT_THAT(seen, Not(::testing::Contains(field.name)));
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
  constexpr std::pair<CommandSet, const char*> kCommands[] = {
      {kServe, "serve"}, {kGenerate, "generate"}, {kInspect, "inspect"}, {kBuildDatastore, "build-datastore"}};
  for (const auto& [bit, name] : kCommands) {
    Problems problems;
    const CommandLine line = parse_command_line({name, "--help=all"}, problems);
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
    if (kind == "text" || kind == "list" || kind == "choice" || kind == "switch") continue;
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

TEST(Fields, ASwitchNeedsNoValueAndLeavesTheNextWordToMODEL) {
  Problems problems;
  const auto typed = [&](std::vector<std::string> words) {
    return settle(parse_command_line(words, problems).flags, problems);
  };
  EXPECT_EQ(typed({"pull", "--allow-http-hub", "org/name"}).allow_http_hub, "on");
  EXPECT_EQ(typed({"pull", "--allow-http-hub", "org/name"}).model, "org/name");
  EXPECT_EQ(typed({"pull", "org/name", "--allow-http-hub=off"}).allow_http_hub, "off");
  EXPECT_EQ(typed({"pull", "org/name"}).allow_http_hub, "off");
  EXPECT_EQ(with("allow-http-hub", "True", problems).allow_http_hub, "on");
  EXPECT_EQ(with("allow-http-hub", "0", problems).allow_http_hub, "off");
  EXPECT_THAT(problems, IsEmpty());
  with("allow-http-hub", "maybe", problems);
  EXPECT_THAT(problems, ElementsAre("--allow-http-hub 'maybe': expected one of off|on"));
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

}  // namespace
}  // namespace quire::app::config_fields_test
