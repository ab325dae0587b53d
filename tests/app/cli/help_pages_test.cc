#include "app/cli/help_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "app/cli/command_texts.h"
#include "app/command_line.h"
#include "app/config/config_fields.h"

namespace quire::app::help_pages_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string page(const std::vector<std::string>& args, std::size_t columns = 80) {
  Problems problems;
  CommandLine line = parse_command_line(args, problems, columns);
  EXPECT_THAT(problems, IsEmpty());
  return std::move(line.text);
}

Problems problems_of(const std::vector<std::string>& args) {
  Problems problems;
  parse_command_line(args, problems);
  return problems;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Every page of the program but those of bench, which another program prints.
std::vector<std::vector<std::string>> all_pages() {
  std::vector<std::vector<std::string>> out = {{"--help"}};
  for (const CommandText& command : command_texts()) {
    const std::string name(command.name);
    if (name == "bench") continue;
    out.push_back({name, "--help"});
    out.push_back({name, "--help=all"});
  }
  for (const GroupName& group : groups()) out.push_back({"serve", "--help=" + std::string(group.topic)});
  return out;
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    longest = std::max(longest, static_cast<std::size_t>(std::ranges::count_if(line, is_start)));
  }
  return longest;
}

TEST(HelpPages, KeepToTheWidthOfTheTerminalAndLoseNoWord) {
  for (const auto& args : all_pages()) {
    const std::string wide = page(args, 10000);
    for (const std::size_t columns : {60, 80, 200}) {
      const std::string text = page(args, columns);
      EXPECT_LE(longest_line(text), columns) << ::testing::PrintToString(args);
      EXPECT_EQ(words_of(text), words_of(wide)) << ::testing::PrintToString(args) << " " << columns;
    }
    EXPECT_THAT(wide, Not(HasSubstr("\x1b")));
  }
}

TEST(HelpPages, TheFirstPageOfServeNamesEverySettingAndFitsTwoScreens) {
  const std::string text = page({"serve", "--help"});
  for (const Field& field : fields()) {
    if ((field.commands & kServe) != 0) {
      EXPECT_THAT(text, HasSubstr(flag_of(field)));
    }
  }
  EXPECT_LE(std::ranges::count(text, '\n'), 90);
  EXPECT_LT(text.size(), page({"serve", "--help=all"}).size() / 3);
}

TEST(HelpPages, AllHasEverySettingWithItsDefaultRangeChoicesAndVariable) {
  const std::string text = page({"serve", "--help=all"}, 10000);
  for (const Field& field : fields()) {
    if ((field.commands & kServe) == 0) continue;
    EXPECT_THAT(text, HasSubstr("[env: " + environment_of(field) + "]"));
    EXPECT_THAT(text, HasSubstr(std::string(field.help)));
    if (!field.fallback.empty()) {
      EXPECT_THAT(text, HasSubstr("[default: " + std::string(field.fallback) + "]"));
    }
    if (choices(field).empty()) continue;
    for (const std::string_view choice : choices(field)) EXPECT_THAT(text, HasSubstr(std::string(choice)));
  }
  EXPECT_THAT(text, HasSubstr("--plan"));
}

TEST(HelpPages, EverySettingIsInOneGroupAndEveryGroupHasSome) {
  std::set<std::string_view> topics;
  for (const GroupName& group : groups()) {
    EXPECT_EQ(static_cast<std::size_t>(group.group), topics.size());
    EXPECT_TRUE(topics.insert(group.topic).second);
    const std::string text = page({"serve", "--help=" + std::string(group.topic)});
    std::size_t named = 0;
    for (const Field& field : fields()) {
      if ((field.commands & kServe) == 0) continue;
      const bool is_there = text.find("[env: " + environment_of(field) + "]") != text.npos;
      EXPECT_EQ(is_there, field.group == group.group) << field.name;
      named += is_there ? 1 : 0;
    }
    EXPECT_GT(named, 0u) << group.title;
    EXPECT_THAT(text, ::testing::StartsWith(std::string(group.title) + ":\n"));
    EXPECT_EQ(page({"serve", "--help=" + std::string(group.title)}), text);
  }
}

TEST(HelpPages, ATopicMayBeAFlagOrAPartOfOne) {
  EXPECT_THAT(page({"serve", "--help=max-model-len"}), HasSubstr("--max-model-len COUNT"));
  EXPECT_EQ(page({"serve", "--help=--max_model_len"}), page({"serve", "--help=max-model-len"}));
  const std::string text = page({"serve", "--help=timeout"});
  for (const char* flag : {"--stall-timeout", "--drain-timeout", "--header-timeout", "--body-timeout"}) {
    EXPECT_THAT(text, HasSubstr(flag));
  }
  EXPECT_THAT(text, Not(HasSubstr("--port")));
  EXPECT_THAT(page({"generate", "--help=temperature"}), HasSubstr("--temperature NUMBER"));
  EXPECT_THAT(problems_of({"serve", "--help=nonsense"}),
              ElementsAre(HasSubstr("expected model, api, server, security, compute, memory, scheduling, speculation, "
                                    "logs, all, or a flag's name")));
  EXPECT_THAT(problems_of({"serve", "--help=--"}), SizeIs(1));
}

TEST(HelpPages, FlagsAreListedOneALine) {
  EXPECT_EQ(page({"rm", "--help=flags"}),
            "--model\n--revision\n--download-dir\n--config\n--log-level\n--log-format\n"
            "--yes\n--help\n");
}

TEST(HelpPages, HelpIsUnderstoodWhereverItStands) {
  const std::string text = page({"serve", "--help"});
  EXPECT_EQ(page({"serve", "-h"}), text);
  EXPECT_EQ(page({"help", "serve"}), text);
  EXPECT_EQ(page({"--help", "serve"}), text);
  EXPECT_EQ(page({"serve", "model.gguf", "-c", "4096", "--odd", "-h"}), text);
  EXPECT_EQ(page({"help", "serve", "memory"}), page({"serve", "--help=memory"}));
  EXPECT_EQ(page({"help"}), page({"-h"}));
  EXPECT_THAT(problems_of({"serv", "--help"}), ElementsAre("unknown command serv: did you mean serve?"));
  EXPECT_THAT(problems_of({"help", "run"}), ElementsAre(HasSubstr("quire chat")));
  Problems problems;
  EXPECT_EQ(parse_command_line({"generate", "stories", "--", "--help"}, problems).command, Command::kGenerate);
}

TEST(HelpPages, TheHelpOfBenchIsLeftToItsProgram) {
  Problems problems;
  EXPECT_THAT(parse_command_line({"help", "bench"}, problems).bench_args, ElementsAre("--help"));
  EXPECT_THAT(parse_command_line({"help", "bench", "logs"}, problems).bench_args, ElementsAre("--help=logs"));
  EXPECT_THAT(parse_command_line({"--help", "bench"}, problems).bench_args, ElementsAre("--help"));
  EXPECT_THAT(problems, IsEmpty());
}

// The words of an example, as a shell would split it.
std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> out;
  bool is_quoted = false;
  bool is_new = true;
  for (const char c : line) {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == ' ' && !is_quoted) {
      is_new = true;
    } else {
      if (is_new) out.emplace_back();
      is_new = false;
      out.back() += c;
    }
  }
  return out;
}

TEST(HelpPages, EveryCommandHasThreeExamplesThatParse) {
  std::set<std::string> named;
  for (const std::string& word : words_of(page({"--help"}))) named.insert(word);
  for (const CommandText& command : command_texts()) {
    EXPECT_TRUE(named.contains(std::string(command.name)));
    for (const Example& example : command.examples) {
      std::string line(example.line);
      for (const std::string_view around : {"source <(", ")", " | source", " | grep -i qwen"}) {
        if (const std::size_t at = line.find(around); at != line.npos) line.erase(at, around.size());
      }
      std::vector<std::string> args = shell_words(line);
      ASSERT_EQ(args.front(), "quire");
      args.erase(args.begin());
      EXPECT_EQ(args.front(), command.name);
      EXPECT_THAT(problems_of(args), IsEmpty()) << line;
      EXPECT_FALSE(example.text.empty());
    }
  }
}

TEST(HelpPages, EveryCommandHasExamples) {
  Problems problems;
  const std::string script = parse_command_line({"completion", "fish"}, problems).text;
  std::istringstream lines(script);
  std::size_t commands = 0;
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kBegin = "complete -c quire -n __fish_use_subcommand -a ";
    if (!line.starts_with(kBegin)) continue;
    const std::string name = line.substr(kBegin.size(), line.find(' ', kBegin.size()) - kBegin.size());
    ++commands;
    if (name != "help" && name != "version") {
      EXPECT_NE(find_command_text(name), nullptr) << name;
    }
  }
  EXPECT_EQ(commands, command_texts().size() + 2);
}

TEST(HelpPages, TheMostUsedSettingsAreSettings) {
  for (const std::string_view name : most_used_fields()) EXPECT_NE(find_field(name), nullptr) << name;
}

}  // namespace
}  // namespace quire::app::help_pages_test
