#include "app/config/vllm_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "app/config/config_fields.h"
#include "tests/support/source_tree.h"

namespace quire::app::vllm_flags_test {
namespace {

using test::source_text;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Outcome {
  std::vector<std::string> args;
  std::vector<std::string> notes;
  Problems problems;
};

Outcome translate(const std::vector<std::string>& args) {
  Outcome out;
  Translated translated = translate_vllm(args, out.problems);
  out.args = std::move(translated.args);
  out.notes = std::move(translated.notes);
  return out;
}

// A value that the row takes: the first of those it lists, or a number.
std::string value_for(const VllmFlag& row) {
  if (row.treatment == Treatment::kNoted && !row.to.empty()) return std::string(row.to.substr(0, row.to.find('|')));
  if (row.name == "uvicorn-log-level") return "info";
  if (row.treatment == Treatment::kMapped && row.arity == Arity::kNone) return "on";  // what a switch means
  return "7";
}

// Maps to one key of a flag that is JSON.
bool is_a_key(const VllmFlag& row) { return row.treatment == Treatment::kMapped && row.to.find('.') != row.to.npos; }

// Every way to spell the flag with that value.
std::vector<std::vector<std::string>> spellings(const VllmFlag& row, const std::string& value) {
  std::string with_underscores(row.name);
  std::replace(with_underscores.begin(), with_underscores.end(), '-', '_');
  const std::string flag = "--" + std::string(row.name);
  std::vector<std::vector<std::string>> out;
  if (row.arity == Arity::kNone) {
    out = {{flag}, {"--" + with_underscores}};
    if (!row.short_name.empty()) out.push_back({std::string(row.short_name)});
    return out;
  }
  out = {
      {flag, value}, {flag + "=" + value}, {"--" + with_underscores, value}, {"--" + with_underscores + "=" + value}};
  if (!row.short_name.empty()) {
    out.push_back({std::string(row.short_name), value});
    out.push_back({std::string(row.short_name) + "=" + value});
  }
  return out;
}

void expect_behaves(const VllmFlag& row, const std::vector<std::string>& spelling, const std::string& value) {
  std::vector<std::string> args = {"dir"};
  args.insert(args.end(), spelling.begin(), spelling.end());
  args.push_back("--port=5");
  const Outcome outcome = translate(args);
  const std::string shown = ::testing::PrintToString(spelling);
  std::vector<std::string> expected = {"dir"};
  switch (row.treatment) {
    case Treatment::kSame:
      expected.push_back("--" + std::string(row.name) + "=" + value +
                         std::string(row.to.empty() ? "" : row.to.substr(1)));
      EXPECT_THAT(outcome.problems, IsEmpty()) << shown;
      EXPECT_THAT(outcome.notes, IsEmpty()) << shown;
      break;
    case Treatment::kMapped: {
      const std::size_t colon = row.to.find(':');
      const std::string unit(colon == row.to.npos ? "" : row.to.substr(colon + 1));
      expected.push_back("--" + std::string(row.to.substr(0, colon)) + "=" + value + unit);
      EXPECT_THAT(outcome.problems, IsEmpty()) << shown;
      break;
    }
    case Treatment::kNoted:
      EXPECT_THAT(outcome.problems, IsEmpty()) << shown;
      EXPECT_THAT(outcome.notes, ElementsAre(HasSubstr(std::string(row.text)))) << shown;
      break;
    case Treatment::kRefused:
      EXPECT_THAT(outcome.notes, IsEmpty()) << shown;
      EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr(std::string(row.text)))) << shown;
      break;
  }
  expected.push_back("--port=5");
  EXPECT_EQ(outcome.args, expected) << shown;
}

TEST(VllmFlags, EveryRowBehavesAsDocumentedInEverySpelling) {
  for (const VllmFlag& row : vllm_flags()) {
    if (is_a_key(row)) continue;  // they are put together: a test of its own
    const std::string value = value_for(row);
    for (const auto& spelling : spellings(row, value)) expect_behaves(row, spelling, value);
  }
}

TEST(VllmFlags, RowsAreSortedAndNamedOnceAndSayWhy) {
  std::set<std::string_view> short_names;
  std::string_view last;
  for (const VllmFlag& row : vllm_flags()) {
    EXPECT_LT(last, row.name);
    last = row.name;
    if (!row.short_name.empty()) {
      EXPECT_TRUE(short_names.insert(row.short_name).second) << row.short_name;
    }
    if (row.treatment == Treatment::kNoted || row.treatment == Treatment::kRefused) {
      EXPECT_FALSE(row.text.empty()) << row.name;
    }
    EXPECT_EQ(row.treatment == Treatment::kSame, find_field(row.name) != nullptr) << row.name;
  }
  EXPECT_GT(vllm_flags().size(), 300u);
}

TEST(VllmFlags, MappedRowsGiveValuesThatOurFlagTakes) {
  for (const VllmFlag& row : vllm_flags()) {
    if (row.treatment != Treatment::kMapped || is_a_key(row)) continue;
    const std::string_view name = row.to.substr(0, row.to.find(':'));
    const Field* field = find_field(name);
    ASSERT_NE(field, nullptr) << row.name;
    EXPECT_NE(field->commands & kServe, 0u);
    const bool is_size = kind_of(*field) == "size";
    const Outcome outcome = translate({"--" + std::string(row.name), is_size ? "4096" : value_for(row)});
    const std::string value = outcome.args.at(0).substr(outcome.args.at(0).find('=') + 1);
    Config config;
    EXPECT_TRUE(store(*field, std::span(&value, 1), config)) << row.name;
  }
}

TEST(VllmFlags, ValuesThatARowDoesNotListAreRefused) {
  for (const VllmFlag& row : vllm_flags()) {
    if (row.treatment != Treatment::kNoted || row.to.empty()) continue;
    const Outcome outcome = translate({"--" + std::string(row.name), "another"});
    EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr("refused, only " + std::string(row.to)))) << row.name;
  }
  EXPECT_THAT(translate({"-pp", "2"}).problems, ElementsAre(HasSubstr("refused, only 1")));
}

TEST(VllmFlags, SwitchingOffWhatIsRefusedIsNoted) {
  for (const VllmFlag& row : vllm_flags()) {
    if (row.arity != Arity::kNone || row.treatment == Treatment::kMapped) continue;
    const Outcome outcome = translate({"--no-" + std::string(row.name)});
    EXPECT_THAT(outcome.problems, IsEmpty()) << row.name;
    EXPECT_THAT(outcome.notes, SizeIs(1)) << row.name;
  }
}

TEST(VllmFlags, AMappedSwitchIsOnAndItsNoFormIsOff) {
  EXPECT_THAT(translate({"--enable-prefix-caching"}).args, ElementsAre("--prefix-caching=on"));
  EXPECT_THAT(translate({"--no-enable-prefix-caching"}).args, ElementsAre("--prefix-caching=off"));
  EXPECT_THAT(translate({"--no_enable_prefix_caching"}).args, ElementsAre("--prefix-caching=off"));
}

TEST(VllmFlags, AFlagThatTakesAValueHasNoNegation) {
  EXPECT_THAT(translate({"--no-tensor-parallel-size", "1"}).args, ElementsAre("--no-tensor-parallel-size", "1"));
}

TEST(VllmFlags, KeysOfAJsonValueAreTheFlagItself) {
  EXPECT_THAT(translate({"--compilation_config.mode=3", "dir"}).args, ElementsAre("dir"));
}

TEST(VllmFlags, KeysOfTheSpeculativeConfigArePutTogether) {
  EXPECT_THAT(
      translate({"--speculative-config.method", "ngram", "dir", "--speculative_config.prompt-lookup-max=3"}).args,
      ElementsAre("dir", R"(--speculative-config={"method":"ngram","prompt_lookup_max":3})"));
  EXPECT_THAT(
      translate({"dir", "--spec-method", "eagle3", "--spec_model=a/\"b\"", "--spec-tokens", "5", "--", "x"}).args,
      ElementsAre("dir", R"(--speculative-config={"method":"eagle3","model":"a/\"b\"","num_speculative_tokens":5})",
                  "--", "x"));
  EXPECT_THAT(translate({"-sc", R"({"method":"ngram"})"}).args,
              ElementsAre(R"(--speculative-config={"method":"ngram"})"));
  EXPECT_THAT(translate({"-sc={}", "--spec-tokens", "5"}).problems,
              ElementsAre("--speculative-config: given as a whole and in parts: leave one of them out"));
}

TEST(VllmFlags, KeysOfEachJsonFlagStandInItsOwn) {
  EXPECT_THAT(translate({"--kv-events-config.enable_kv_cache_events", "true", "--spec-tokens", "5",
                         "--kv_events_config.replay-endpoint=tcp://*:1", "--kv-events-config.topic", "kv@h:1@m"})
                  .args,
              ElementsAre(R"(--kv-events-config={"enable_kv_cache_events":true,"replay_endpoint":"tcp://*:1","topic":)"
                          R"("kv@h:1@m"})",
                          R"(--speculative-config={"num_speculative_tokens":5})"));
  EXPECT_THAT(translate({"--kv-events-config", "{}", "--spec-tokens", "5"}).problems, IsEmpty());
  EXPECT_THAT(translate({"--kv-events-config", "{}", "--kv-events-config.hwm", "5"}).problems,
              ElementsAre("--kv-events-config: given as a whole and in parts: leave one of them out"));
}

TEST(VllmFlags, WhatMapsToAKeyIsTakenAsOne) {
  for (const VllmFlag& row : vllm_flags()) {
    if (!is_a_key(row)) continue;
    const Outcome outcome = translate({"--" + std::string(row.name), "5"});
    EXPECT_THAT(outcome.args, ElementsAre(HasSubstr("\"" + std::string(row.to.substr(row.to.find('.') + 1)) + "\":5")));
    ASSERT_NE(find_field(row.to.substr(0, row.to.find('.'))), nullptr) << row.name;
  }
}

TEST(VllmFlags, ShortFormsTakeTheirValuesBesideThem) {
  EXPECT_THAT(translate({"-O3", "dir"}).args, ElementsAre("dir"));
  EXPECT_THAT(translate({"-pp=1", "dir"}).args, ElementsAre("dir"));
  EXPECT_THAT(translate({"-tp=2", "dir"}).args, ElementsAre("--tensor-parallel-size=2", "dir"));
  EXPECT_THAT(translate({"-q", "awq"}).problems, SizeIs(1));
}

TEST(VllmFlags, AListEndsAtTheModelOrTheNextFlag) {
  EXPECT_THAT(translate({"dir", "--served-model-name", "a", "b", "--port", "1"}).args,
              ElementsAre("dir", "--served-model-name=a", "--served-model-name=b", "--port=1"));
  EXPECT_THAT(translate({"--served-model-name", "a", "dir"}).args, ElementsAre("--served-model-name=a", "dir"));
  EXPECT_THAT(translate({"dir", "--hf-token", "--port", "1"}).args, ElementsAre("dir", "--port=1"));
  EXPECT_THAT(translate({"dir", "--hf-token", "x", "--port", "1"}).args, ElementsAre("dir", "--port=1"));
}

TEST(VllmFlags, APlainSwapSpaceIsInGiB) {
  EXPECT_THAT(translate({"--swap-space", "4"}).args, ElementsAre("--swap-space=4GiB"));
  EXPECT_THAT(translate({"--swap_space=0.5"}).args, ElementsAre("--swap-space=0.5GiB"));
  EXPECT_THAT(translate({"--swap-space", "512MiB"}).args, ElementsAre("--swap-space=512MiB"));
  EXPECT_THAT(translate({"--body-limit", "4096"}).args, ElementsAre("--body-limit=4096"));
}

TEST(VllmFlags, EveryPolicyOfVllmIsOneHere) {
  for (const std::string policy : {"fcfs", "priority"}) {
    Config config;
    EXPECT_TRUE(store(*find_field("scheduling-policy"), std::span(&policy, 1), config)) << policy;
  }
}

TEST(VllmFlags, UnknownFlagsAndWhatFollowsTwoDashesAreLeftAlone) {
  EXPECT_THAT(translate({"--odd", "1", "--", "--enable-lora"}).args, ElementsAre("--odd", "1", "--", "--enable-lora"));
}

TEST(VllmFlags, AMissingValueIsAProblem) {
  EXPECT_THAT(translate({"dir", "--tensor-parallel-size"}).problems,
              ElementsAre("--tensor-parallel-size: expected a value"));
  EXPECT_THAT(translate({"dir", "--port", "--host", "x"}).problems, ElementsAre("--port: expected a value"));
}

TEST(VllmFlags, SecondsBecomeATime) {
  EXPECT_THAT(translate({"--shutdown-timeout", "30"}).args, ElementsAre("--drain-timeout=30s"));
}

TEST(Docs, FlagsPageIsTheGeneratedOne) {
  EXPECT_EQ(source_text("docs/flags.md"), flags_markdown())
      << "run: quire serve --print-flags-markdown > docs/flags.md";
}

TEST(Docs, VllmPageIsTheGeneratedOne) {
  EXPECT_EQ(source_text("docs/vllm-flags.md"), vllm_flags_markdown())
      << "run: quire serve --print-vllm-flags-markdown > docs/vllm-flags.md";
}

}  // namespace
}  // namespace quire::app::vllm_flags_test
