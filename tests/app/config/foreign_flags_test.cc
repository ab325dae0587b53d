#include "app/config/foreign_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "app/config/config_fields.h"
#include "tests/support/source_tree.h"

namespace quire::app::foreign_flags_test {
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
  Translated translated = translate_foreign(args, out.problems);
  out.args = std::move(translated.args);
  out.notes = std::move(translated.notes);
  return out;
}

using Rows = std::span<const ForeignFlag>;

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find('|'));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    out.emplace_back(one);
  }
  return out;
}

// Our value for one that the row takes.
std::string ours_for(const ForeignFlag& row, const std::string& value) {
  for (const std::string& pair : parts_of(row.values)) {
    if (pair.starts_with(value + "=")) return pair.substr(value.size() + 1);
  }
  return value;
}

// A value that the row takes: the first of those it lists, or a number.
std::string value_for(const ForeignFlag& row) {
  if (!row.values.empty()) return parts_of(row.values).front().substr(0, parts_of(row.values).front().find('='));
  if (row.treatment == Treatment::kNoted && !row.to.empty()) return std::string(row.to.substr(0, row.to.find('|')));
  if (row.name == "uvicorn-log-level") return "info";
  if (row.treatment == Treatment::kMapped && row.arity == Arity::kNone) return "on";  // what a switch means
  return "7";
}

// Maps to one key of a flag that is JSON.
bool is_a_key(const ForeignFlag& row) { return row.treatment == Treatment::kMapped && row.to.find('.') != row.to.npos; }

// Every way to spell the flag with that value.
std::vector<std::vector<std::string>> spellings(const ForeignFlag& row, const std::string& value) {
  std::string with_underscores(row.name);
  std::replace(with_underscores.begin(), with_underscores.end(), '-', '_');
  std::vector<std::string> flags = parts_of(row.others);
  flags.push_back("--" + std::string(row.name));
  flags.push_back("--" + with_underscores);
  std::vector<std::vector<std::string>> out;
  for (const std::string& flag : flags) {
    if (row.arity == Arity::kNone) {
      out.push_back({flag});
      continue;
    }
    out.push_back({flag, value});
    out.push_back({flag + "=" + value});
  }
  return out;
}

void expect_behaves(const ForeignFlag& row, const std::vector<std::string>& spelling, const std::string& value) {
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
      if (row.to.find('=') != row.to.npos) {
        expected.push_back("--" + std::string(row.to));
        EXPECT_THAT(outcome.problems, IsEmpty()) << shown;
        break;
      }
      const std::size_t colon = row.to.find(':');
      const std::string unit(colon == row.to.npos ? "" : row.to.substr(colon + 1));
      const std::string ours = ours_for(row, value);
      EXPECT_THAT(outcome.problems, IsEmpty()) << shown;
      EXPECT_THAT(outcome.notes, SizeIs(ours.empty() ? 1 : 0)) << shown;
      if (!ours.empty()) expected.push_back("--" + std::string(row.to.substr(0, colon)) + "=" + ours + unit);
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
    case Treatment::kVllm:
      break;  // a row of vLLM's has the name: its own test
  }
  expected.push_back("--port=5");
  EXPECT_EQ(outcome.args, expected) << shown;
}

TEST(ForeignFlags, EveryRowBehavesAsDocumentedInEverySpelling) {
  for (const Rows rows : {vllm_flags(), llama_flags()}) {
    for (const ForeignFlag& row : rows) {
      if (is_a_key(row) || row.treatment == Treatment::kVllm || row.name == "model") continue;  // tests of their own
      const std::string value = value_for(row);
      for (const auto& spelling : spellings(row, value)) expect_behaves(row, spelling, value);
    }
  }
}

TEST(ForeignFlags, RowsAreSortedAndNamedOnceAndSayWhy) {
  std::set<std::string> others;
  for (const Rows rows : {vllm_flags(), llama_flags()}) {
    std::string_view last;
    for (const ForeignFlag& row : rows) {
      EXPECT_LT(last, row.name);
      last = row.name;
      for (const std::string& other : parts_of(row.others)) {
        EXPECT_TRUE(others.insert(other).second) << other;
        EXPECT_TRUE(other.starts_with('-')) << other;
        if (other.starts_with("--")) {
          EXPECT_EQ(find_field(other.substr(2)), nullptr) << other;
        }
      }
      if (row.treatment == Treatment::kNoted || row.treatment == Treatment::kRefused) {
        EXPECT_FALSE(row.text.empty()) << row.name;
      }
      EXPECT_EQ(row.treatment == Treatment::kSame, find_field(row.name) != nullptr) << row.name;
    }
  }
  EXPECT_GT(vllm_flags().size(), 300u);
  EXPECT_GT(llama_flags().size(), 200u);
}

TEST(ForeignFlags, ANameOfBothProgramsHasTheMeaningOfVllm) {
  std::set<std::string_view> names;
  for (const ForeignFlag& row : vllm_flags()) names.insert(row.name);
  for (const ForeignFlag& row : llama_flags()) {
    const bool has_both = names.contains(row.name) && find_field(row.name) == nullptr;
    EXPECT_EQ(row.treatment == Treatment::kVllm, has_both) << row.name;
    for (const std::string& other : parts_of(row.others)) {
      if (other.starts_with("--")) {
        EXPECT_FALSE(names.contains(other.substr(2))) << other;
      }
    }
  }
  EXPECT_THAT(translate({"-ub", "512"}).notes, ElementsAre(HasSubstr("-ub: accepted, has no effect")));
  EXPECT_THAT(translate({"-s", "7"}).notes, ElementsAre(HasSubstr("-s: accepted, has no effect: the seed")));
  EXPECT_THAT(translate({"-n", "512"}).problems, ElementsAre(HasSubstr("llama.cpp's -n is max_tokens")));
}

TEST(ForeignFlags, MappedRowsGiveValuesThatOurFlagTakes) {
  std::vector<ForeignFlag> all(vllm_flags().begin(), vllm_flags().end());
  all.insert(all.end(), llama_flags().begin(), llama_flags().end());
  for (const ForeignFlag& row : all) {
    if (row.treatment != Treatment::kMapped || is_a_key(row)) continue;
    const std::string_view name = row.to.substr(0, row.to.find_first_of(":="));
    const Field* field = find_field(name);
    ASSERT_NE(field, nullptr) << row.name;
    EXPECT_NE(field->commands & kServe, 0u);
    const bool is_size = kind_of(*field) == "size";
    std::vector<std::string> values = {is_size ? "4096" : value_for(row)};
    for (const std::string& pair : parts_of(row.values)) values.push_back(pair.substr(0, pair.find('=')));
    for (const std::string& given : values) {
      const std::string theirs = given == "*" ? "7" : given;
      const Outcome outcome = translate({"--" + std::string(row.name), theirs});
      EXPECT_THAT(outcome.problems, IsEmpty()) << row.name;
      if (outcome.args.empty()) continue;  // noted
      const std::string value = outcome.args.at(0).substr(outcome.args.at(0).find('=') + 1);
      Config config;
      EXPECT_TRUE(store(*field, std::span(&value, 1), config)) << row.name << " " << theirs;
    }
  }
}

TEST(ForeignFlags, ASwitchThatStandsForAValueIsNothingWhenItIsNegated) {
  EXPECT_THAT(translate({"--disable-log-stats"}).args, ElementsAre("--log-stats-interval=0"));
  EXPECT_THAT(translate({"--no-disable-log-stats"}).args, IsEmpty());
}

TEST(ForeignFlags, ValuesThatARowDoesNotListAreRefused) {
  for (const Rows rows : {vllm_flags(), llama_flags()}) {
    for (const ForeignFlag& row : rows) {
      if (row.treatment != Treatment::kNoted || row.to.empty() || row.arity == Arity::kMaybe) continue;
      const Outcome outcome = translate({"--" + std::string(row.name), "another"});
      EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr("refused, only " + std::string(row.to)))) << row.name;
    }
  }
  EXPECT_THAT(translate({"-pp", "2"}).problems, ElementsAre(HasSubstr("refused, only 1")));
}

TEST(ForeignFlags, SwitchingOffWhatIsRefusedIsNoted) {
  for (const Rows rows : {vllm_flags(), llama_flags()}) {
    for (const ForeignFlag& row : rows) {
      if (row.arity != Arity::kNone || row.treatment == Treatment::kMapped || row.name.starts_with("no-")) continue;
      const Outcome outcome = translate({"--no-" + std::string(row.name)});
      EXPECT_THAT(outcome.problems, IsEmpty()) << row.name;
      EXPECT_THAT(outcome.notes, SizeIs(1)) << row.name;
    }
  }
}

TEST(ForeignFlags, AMappedSwitchIsOnAndItsNoFormIsOff) {
  EXPECT_THAT(translate({"--enable-prefix-caching"}).args, ElementsAre("--prefix-caching=on"));
  EXPECT_THAT(translate({"--no-enable-prefix-caching"}).args, ElementsAre("--prefix-caching=off"));
  EXPECT_THAT(translate({"--no_enable_prefix_caching"}).args, ElementsAre("--prefix-caching=off"));
}

TEST(ForeignFlags, AFlagThatTakesAValueHasNoNegation) {
  EXPECT_THAT(translate({"--no-tensor-parallel-size", "1"}).args, ElementsAre("--no-tensor-parallel-size", "1"));
}

TEST(ForeignFlags, KeysOfAJsonValueAreTheFlagItself) {
  EXPECT_THAT(translate({"--compilation_config.mode=3", "dir"}).args, ElementsAre("dir"));
}

TEST(ForeignFlags, KeysOfTheSpeculativeConfigArePutTogether) {
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

TEST(ForeignFlags, KeysOfEachJsonFlagStandInItsOwn) {
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

TEST(ForeignFlags, WhatMapsToAKeyIsTakenAsOne) {
  for (const ForeignFlag& row : vllm_flags()) {
    if (!is_a_key(row)) continue;
    const Outcome outcome = translate({"--" + std::string(row.name), "5"});
    EXPECT_THAT(outcome.args, ElementsAre(HasSubstr("\"" + std::string(row.to.substr(row.to.find('.') + 1)) + "\":5")));
    ASSERT_NE(find_field(row.to.substr(0, row.to.find('.'))), nullptr) << row.name;
  }
}

TEST(ForeignFlags, ShortFormsTakeTheirValuesBesideThem) {
  EXPECT_THAT(translate({"-O3", "dir"}).args, ElementsAre("dir"));
  EXPECT_THAT(translate({"-pp=1", "dir"}).args, ElementsAre("dir"));
  EXPECT_THAT(translate({"-tp=2", "dir"}).args, ElementsAre("--tensor-parallel-size=2", "dir"));
  EXPECT_THAT(translate({"-q", "awq"}).problems, SizeIs(1));
}

TEST(ForeignFlags, AListEndsAtTheModelOrTheNextFlag) {
  EXPECT_THAT(translate({"dir", "--served-model-name", "a", "b", "--port", "1"}).args,
              ElementsAre("dir", "--served-model-name=a", "--served-model-name=b", "--port=1"));
  EXPECT_THAT(translate({"--served-model-name", "a", "dir"}).args, ElementsAre("--served-model-name=a", "dir"));
  EXPECT_THAT(translate({"dir", "--hf-token", "--port", "1"}).args, ElementsAre("dir", "--port=1"));
  EXPECT_THAT(translate({"dir", "--hf-token", "x", "--port", "1"}).args, ElementsAre("dir", "--port=1"));
}

TEST(ForeignFlags, APlainSwapSpaceIsInGiB) {
  EXPECT_THAT(translate({"--swap-space", "4"}).args, ElementsAre("--swap-space=4GiB"));
  EXPECT_THAT(translate({"--swap_space=0.5"}).args, ElementsAre("--swap-space=0.5GiB"));
  EXPECT_THAT(translate({"--swap-space", "512MiB"}).args, ElementsAre("--swap-space=512MiB"));
  EXPECT_THAT(translate({"--body-limit", "4096"}).args, ElementsAre("--body-limit=4096"));
}

TEST(ForeignFlags, EveryPolicyOfVllmIsOneHere) {
  for (const std::string policy : {"fcfs", "priority"}) {
    Config config;
    EXPECT_TRUE(store(*find_field("scheduling-policy"), std::span(&policy, 1), config)) << policy;
  }
}

TEST(ForeignFlags, UnknownFlagsAndWhatFollowsTwoDashesAreLeftAlone) {
  EXPECT_THAT(translate({"--odd", "1", "--", "--enable-lora"}).args, ElementsAre("--odd", "1", "--", "--enable-lora"));
}

TEST(ForeignFlags, AMissingValueIsAProblem) {
  EXPECT_THAT(translate({"dir", "--tensor-parallel-size"}).problems,
              ElementsAre("--tensor-parallel-size: expected a value"));
  EXPECT_THAT(translate({"dir", "--port", "--host", "x"}).problems, ElementsAre("--port: expected a value"));
}

TEST(ForeignFlags, SecondsBecomeATime) {
  EXPECT_THAT(translate({"--shutdown-timeout", "30"}).args, ElementsAre("--drain-timeout=30s"));
}

TEST(ForeignFlags, ACommandOfLlamaServerIsTranslated) {
  const Outcome outcome = translate(
      {"-m",      "model.gguf", "-c",  "4096", "-t",     "8",           "-np", "4",    "-b",   "2048",      "-ngl",
       "99",      "--host",     "::",  "-a",   "name",   "-fa",         "on",  "-ctk", "q8_0", "-ctv",      "q8_0",
       "--jinja", "--no-mmap",  "-cb", "-md",  "d.gguf", "--draft-max", "8",   "-lv",  "4",    "--no-webui"});
  EXPECT_THAT(outcome.problems, IsEmpty());
  EXPECT_THAT(
      outcome.args,
      ElementsAre("--model=model.gguf", "--max-model-len=4096", "--threads=8", "--max-num-seqs=4", "--host=::",
                  "--served-model-name=name", "--kv-cache-dtype=int8", "--kv-cache-dtype=int8", "--log-level=debug",
                  R"(--speculative-config={"model":"d.gguf","num_speculative_tokens":8,"method":"draft_model"})"));
  EXPECT_THAT(outcome.notes, SizeIs(7));  // -b -ngl -fa --jinja --no-mmap -cb --no-webui
}

TEST(ForeignFlags, AModelOfTheHubIsNamedWithHf) {
  for (const char* flag : {"-hf", "-hfr", "--hf-repo", "--hf_repo"}) {
    EXPECT_THAT(translate({flag, "ORG/NAME:Q4_K_M"}).args, ElementsAre("--model=ORG/NAME:Q4_K_M")) << flag;
  }
  EXPECT_THAT(translate({"-m=a.gguf", "--served-model-name", "x", "y"}).args,
              ElementsAre("--model=a.gguf", "--served-model-name=x", "--served-model-name=y"));
}

TEST(ForeignFlags, AValueCanStandForAnotherOrForNothing) {
  EXPECT_THAT(translate({"-ngl", "0"}).args, ElementsAre("--device=cpu"));
  EXPECT_THAT(translate({"-ngl", "all"}).args, IsEmpty());
  EXPECT_THAT(translate({"-ngl", "all"}).notes, ElementsAre(HasSubstr("-ngl: accepted, has no effect: 0 is")));
  EXPECT_THAT(translate({"-c", "0"}).args, ElementsAre("--max-model-len=auto"));
  EXPECT_THAT(translate({"-np", "-1"}).args, ElementsAre("--max-num-seqs=-1"));
  EXPECT_THAT(translate({"-ctk", "q5_1"}).problems,
              ElementsAre(HasSubstr("-ctk q5_1: refused, only f32, f16, bf16, q8_0, q4_0 is accepted")));
  EXPECT_THAT(translate({"--spec-type", "draft-mtp"}).problems, ElementsAre(HasSubstr("refused, only none")));
}

TEST(ForeignFlags, AnOptionalValueIsOneOfThoseListed) {
  EXPECT_THAT(translate({"-fa", "model.gguf"}).args, ElementsAre("model.gguf"));
  EXPECT_THAT(translate({"-fa", "auto", "model.gguf"}).args, ElementsAre("model.gguf"));
  EXPECT_THAT(translate({"model.gguf", "-fa", "--port", "1"}).args, ElementsAre("model.gguf", "--port=1"));
}

TEST(ForeignFlags, ShortSwitchesHaveShortNegations) {
  EXPECT_THAT(translate({"-no-kvu"}).notes, SizeIs(1));
  EXPECT_THAT(translate({"-no-ag"}).notes, SizeIs(1));
  EXPECT_THAT(translate({"-ag"}).problems, SizeIs(1));
  EXPECT_THAT(translate({"-no-such"}).args, ElementsAre("-no-such"));
}

TEST(ForeignFlags, TwoFlagsForOneSettingMustAgree) {
  EXPECT_THAT(translate({"-ctk", "q8_0", "-ctv", "q4_0"}).problems,
              ElementsAre("-ctk q8_0 and -ctv q4_0: both set --kv-cache-dtype: leave one of them out"));
  EXPECT_THAT(translate({"--max-model-len", "8", "-c", "9"}).problems, SizeIs(1));
  EXPECT_THAT(translate({"--max-model-len", "8", "-c", "8"}).problems, IsEmpty());
  EXPECT_THAT(translate({"-c", "8", "--ctx-size", "9"}).problems, IsEmpty());  // one flag: the last counts
  EXPECT_THAT(translate({"--port", "8", "--port", "9"}).args, ElementsAre("--port=8", "--port=9"));
}

TEST(ForeignFlags, TheRowOfAWordIsFound) {
  EXPECT_EQ(find_foreign("-c")->name, "ctx-size");
  EXPECT_EQ(find_foreign("--gpu_layers=7")->name, "n-gpu-layers");
  EXPECT_EQ(find_foreign("--no-mmap")->name, "mmap");
  EXPECT_EQ(find_foreign("-tp")->name, "tensor-parallel-size");
  EXPECT_EQ(find_foreign("--nonsense"), nullptr);
  EXPECT_EQ(find_foreign("word"), nullptr);
}

TEST(Docs, LlamaPageIsTheGeneratedOne) {
  EXPECT_EQ(source_text("docs/llama-flags.md"), llama_flags_markdown())
      << "run: quire serve --print-llama-flags-markdown > docs/llama-flags.md";
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
}  // namespace quire::app::foreign_flags_test
