#include "app/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/cli/command_texts.h"
#include "app/command_line.h"
#include "app/config/config_fields.h"

namespace quire::app::completion_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string script_of(const std::string& shell) {
  Problems problems;
  CommandLine line = parse_command_line({"completion", shell}, problems);
  EXPECT_THAT(problems, IsEmpty());
  return std::move(line.text);
}

std::vector<std::string> flags_of(const std::string& command) {
  Problems problems;
  const std::string text = parse_command_line({command, "--help=flags"}, problems).text;
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    out.push_back(text.substr(at, text.find('\n', at) - at));
  }
  return out;
}

// The part of a script that is about one command.
std::string part_about(const std::string& shell, const std::string& script, const std::string& command) {
  if (shell == "fish") {
    std::string out;
    const std::string begin = "complete -c quire -n '__fish_seen_subcommand_from " + command + "'";
    for (std::size_t at = 0; at < script.size(); at = script.find('\n', at) + 1) {
      const std::string line = script.substr(at, script.find('\n', at) - at);
      if (line.starts_with(begin)) out += line + "\n";
    }
    return out;
  }
  const std::size_t at = script.find("\n    " + std::string(shell == "zsh" ? "(" : "") + command + ")\n");
  if (at == script.npos) return "";
  return script.substr(at, script.find(shell == "zsh" ? "fi ;;" : "' ;;\n", at) - at);
}

TEST(Completion, EveryCommandAndEveryFlagOccursInEveryScript) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = script_of(shell);
    for (const CommandText& text : command_texts()) {
      const std::string command(text.name);
      if (command == "bench") continue;  // asked from its program
      const std::string part = part_about(shell, script, command);
      ASSERT_FALSE(part.empty()) << shell << " " << command;
      for (const std::string& flag : flags_of(command)) {
        EXPECT_THAT(part, HasSubstr(shell == "fish" ? " -l " + flag.substr(2) + " " : flag)) << shell << " " << command;
      }
    }
    EXPECT_THAT(script, HasSubstr("bench --help=flags"));
  }
}

TEST(Completion, ChoicesOfAFieldAreOffered) {
  for (const Field& field : fields()) {
    if (choices(field).empty() || field.is_switch() || (field.commands & kServe) == 0) continue;
    std::string words;
    for (const std::string_view choice : choices(field)) words += (words.empty() ? "" : " ") + std::string(choice);
    for (const std::string shell : {"bash", "zsh", "fish"}) EXPECT_THAT(script_of(shell), HasSubstr(words));
  }
}

TEST(Completion, FlagsThatTakePathsCompleteFilesOrDirectories) {
  const std::string script = script_of("fish");
  EXPECT_THAT(script, HasSubstr("-l tls-cert -r -F"));
  EXPECT_THAT(script, HasSubstr("-l prompt-file -r -F"));
  EXPECT_THAT(script, HasSubstr("-l cache-dir -x -a '(__fish_complete_directories)'"));
  EXPECT_THAT(script, HasSubstr("-l plan -d"));
  EXPECT_THAT(script, HasSubstr("-l port -x -d"));
  EXPECT_THAT(script, HasSubstr("-l role -x -a 'user monitor admin'"));
}

}  // namespace
}  // namespace quire::app::completion_test
