#include "app/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/help_pages.h"
#include "app/config/command_flags.h"

namespace quire::app {
namespace {

// Flags whose values are paths, and choices that are not those of a field.
struct KnownValue {
  std::string_view flag;
  ValueKind kind;
  std::string_view choices;  // separated by blanks
};
constexpr KnownValue kValues[] = {
    {"--model", ValueKind::kModel, ""},
    {"--api-key-file", ValueKind::kFile, ""},
    {"--cacert", ValueKind::kFile, ""},
    {"--chat-template", ValueKind::kFile, ""},
    {"--config", ValueKind::kFile, ""},
    {"--file", ValueKind::kFile, ""},
    {"--output", ValueKind::kFile, ""},
    {"--pin-prefix", ValueKind::kFile, ""},
    {"--prompt-file", ValueKind::kFile, ""},
    {"--text", ValueKind::kFile, ""},
    {"--tls-cert", ValueKind::kFile, ""},
    {"--tls-key", ValueKind::kFile, ""},
    {"--uds", ValueKind::kFile, ""},
    {"--cache-dir", ValueKind::kDirectory, ""},
    {"--download-dir", ValueKind::kDirectory, ""},
    {"--packed-cache", ValueKind::kDirectory, ""},
    {"--device", ValueKind::kChoice, "auto cpu cuda"},
    {"--role", ValueKind::kChoice, "user monitor admin"},
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    out.emplace_back(one);
  }
  return out;
}

FlagWords words_of(const CLI::Option& option) {
  const std::string name = flag_name(option);
  const std::string& help = option.get_description();
  FlagWords out{name, help.substr(0, help.find(". ")), ValueKind::kText, {}};
  const Field* field = field_named(name);
  if (option.get_expected_max() == 0 || (field != nullptr && field->is_switch())) {
    out.value = ValueKind::kNone;
  } else if (field != nullptr && !choices(*field).empty()) {
    out.value = ValueKind::kChoice;
    for (const std::string_view choice : choices(*field)) out.choices.emplace_back(choice);
  } else if (const auto at = std::ranges::find(kValues, name, &KnownValue::flag); at != std::end(kValues)) {
    out.value = at->kind;
    out.choices = split(at->choices);
  }
  return out;
}

}  // namespace

std::vector<CommandWords> completion_words(const CLI::App& root) {
  std::vector<CommandWords> out;
  std::vector<std::string> names;
  for (const CLI::App* command : root.get_subcommands([](const CLI::App*) { return true; })) {
    CommandWords words{command->get_name(), command->get_description(), {}, false, {}};
    for (const CLI::Option* option : visible_options(*command)) {
      words.flags.push_back(words_of(*option));
      words.takes_model = words.takes_model || option->get_positional();
    }
    words.flags.push_back({"--help", "Print the help of this command", ValueKind::kNone, {}});
    if (words.name == "completion") words.words = {"bash", "zsh", "fish"};
    if (words.name == "bench") words.takes_model = true;
    names.push_back(words.name);
    out.push_back(std::move(words));
  }
  out.push_back({"help", "Print the help of a command", {}, false, std::move(names)});
  out.push_back({"version", "Print the version", {}, false, {}});
  return out;
}

std::string completion_script(std::string_view shell, const CLI::App& root) {
  if (shell == "bash") return bash_completion(completion_words(root));
  if (shell == "zsh") return zsh_completion(completion_words(root));
  if (shell == "fish") return fish_completion(completion_words(root));
  return "";
}

}  // namespace quire::app
