#include "app/cli/other_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "app/command_line.h"

namespace quire::app::other_commands_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Problems problems_of(const std::vector<std::string>& args) {
  Problems problems;
  parse_command_line(args, problems);
  return problems;
}

TEST(OtherCommands, EachIsAnsweredWithOneOfOurs) {
  std::set<std::string_view> names;
  for (const OtherCommand& other : other_commands()) {
    EXPECT_TRUE(names.insert(other.name).second) << other.name;
    const std::string name(other.name);
    EXPECT_THAT(problems_of({name, "model", "--verbose"}),
                ElementsAre("unknown command " + name + ": " + std::string(other.hint)));
    if (other.ours.empty()) continue;
    EXPECT_THAT(other.hint, HasSubstr("quire " + std::string(other.ours))) << name;
    EXPECT_THAT(problems_of({std::string(other.ours), "--help"}), IsEmpty()) << name;
  }
}

TEST(OtherCommands, NoneIsACommandOfOurs) {
  Problems problems;
  const std::string script = parse_command_line({"completion", "fish"}, problems).text;
  for (const OtherCommand& other : other_commands()) {
    EXPECT_EQ(script.find("__fish_use_subcommand -a " + std::string(other.name) + " "), script.npos) << other.name;
  }
}

TEST(OtherCommands, AnUnknownWordNamesTheNearestCommand) {
  EXPECT_THAT(problems_of({"complet"}), ElementsAre("unknown command complet: did you mean completion?"));
  EXPECT_THAT(problems_of({"chta"}), ElementsAre("unknown command chta: did you mean chat?"));
  EXPECT_THAT(problems_of({"build"}), ElementsAre("unknown command build: did you mean build-datastore?"));
  EXPECT_THAT(problems_of({"xyzzy"}), ElementsAre(HasSubstr("expected serve, chat, generate")));
}

}  // namespace
}  // namespace quire::app::other_commands_test
