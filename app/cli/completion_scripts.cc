// Data of completion.h: the three languages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/cli/completion.h"

namespace quire::app {
namespace {

// Flags of one command whose values are completed in the same way.
std::vector<std::string> names_with(const CommandWords& command, ValueKind kind) {
  std::vector<std::string> out;
  for (const FlagWords& flag : command.flags) {
    if (flag.value == kind) out.push_back(flag.name);
  }
  return out;
}

std::string shell_quoted(std::string_view text) {  // for a shell, in single quotes
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// `case $previous in` for one command: `use` says what is done for each kind.
template <typename Use>
std::string value_cases(const CommandWords& command, std::string_view open, Use use) {
  std::string out;
  for (const ValueKind kind : {ValueKind::kText, ValueKind::kFile, ValueKind::kDirectory, ValueKind::kModel}) {
    const auto names = names_with(command, kind);
    if (!names.empty()) out += fmt::format("        {}{}) {} ;;\n", open, fmt::join(names, "|"), use(kind));
  }
  for (const FlagWords& flag : command.flags) {
    if (flag.value != ValueKind::kChoice) continue;
    out += fmt::format("        {}{}) {} ;;\n", open, flag.name, use(ValueKind::kChoice, flag.choices));
  }
  return out;
}

struct BashValue {
  std::string operator()(ValueKind kind, const std::vector<std::string>& choices = {}) const {
    switch (kind) {
      case ValueKind::kFile:
        return "_quire_files -f; return";
      case ValueKind::kDirectory:
        return "_quire_files -d; return";
      case ValueKind::kModel:
        return "_quire_models; return";
      case ValueKind::kChoice:
        return fmt::format("_quire_words '{}'; return", fmt::join(choices, " "));
      case ValueKind::kText:
      case ValueKind::kNone:
        break;
    }
    return "return";
  }
};

struct ZshValue {
  std::string operator()(ValueKind kind, const std::vector<std::string>& choices = {}) const {
    switch (kind) {
      case ValueKind::kFile:
        return "_files; return";
      case ValueKind::kDirectory:
        return "_files -/; return";
      case ValueKind::kModel:
        return "_quire_models; return";
      case ValueKind::kChoice:
        return fmt::format("compadd -- {}; return", fmt::join(choices, " "));
      case ValueKind::kText:
      case ValueKind::kNone:
        break;
    }
    return "_message value; return";
  }
};

constexpr std::string_view kBashBegin = R"sh(# Completion of quire for bash: source <(quire completion bash)
_quire_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }
_quire_files() { compopt -o filenames; mapfile -t COMPREPLY < <(compgen "$1" -- "$current"); }
# Names of downloaded models, and files.
_quire_models() {
  _quire_files -f
  local names
  names=$("${COMP_WORDS[0]}" list --names 2>/dev/null)
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "stories $names" -- "$current")
}
_quire() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  # --flag=value is three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  local flags words
)sh";

constexpr std::string_view kZshBegin = R"sh(#compdef quire
# Completion of quire for zsh: source <(quire completion zsh), after compinit; or a file named _quire in $fpath.
# Names of downloaded models, and files.
_quire_models() {
  local -a names
  names=(stories ${(f)"$(${words[1]} list --names 2>/dev/null)"})
  compadd -- $names
  _files
}
_quire() {
  local current=${words[CURRENT]} previous=${words[CURRENT-1]}
  local -a flags
  if [[ $current == --*=* ]]; then
    previous=${current%%=*}
    compset -P '*='
    current=${current#*=}
  fi
)sh";

}  // namespace

std::string bash_completion(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) names.push_back(command.name);
  std::string out(kBashBegin);
  out += fmt::format(
      "  if ((COMP_CWORD == 1)); then\n    _quire_words '{} --help --version'\n    return\n  fi\n  case "
      "${{COMP_WORDS[1]}} "
      "in\n",
      fmt::join(names, " "));
  for (const CommandWords& command : commands) {
    std::vector<std::string> flags;
    for (const FlagWords& flag : command.flags) flags.push_back(flag.name);
    out += fmt::format("    {})\n", command.name);
    const std::string cases = value_cases(command, "", BashValue());
    if (!cases.empty()) out += fmt::format("      case $previous in\n{}      esac\n", cases);
    out += command.name == "bench" ? "      flags=$(\"${COMP_WORDS[0]}\" bench --help=flags 2>/dev/null)\n"
                                   : fmt::format("      flags='{}'\n", fmt::join(flags, " "));
    out += fmt::format("      words='{}' ;;\n",
                       command.takes_model ? "MODEL" : fmt::format("{}", fmt::join(command.words, " ")));
  }
  return out +
         "  esac\n"
         "  if [[ $current == -* ]]; then\n    _quire_words \"$flags\"\n"
         "  elif [[ $words == MODEL ]]; then\n    _quire_models\n"
         "  else\n    _quire_words \"$words\"\n  fi\n}\ncomplete -F _quire quire\n";
}

std::string zsh_completion(const std::vector<CommandWords>& commands) {
  std::string out(kZshBegin);
  out += "  if ((CURRENT == 2)); then\n    local -a commands\n    commands=(\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("      {}\n", shell_quoted(command.name + ":" + command.text));
  }
  out += "    )\n    _describe command commands\n    return\n  fi\n  case ${words[2]} in\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("    ({})\n", command.name);
    const std::string cases = value_cases(command, "(", ZshValue());
    if (!cases.empty()) out += fmt::format("      case $previous in\n{}      esac\n", cases);
    if (command.name == "bench") {
      out += "      flags=(${(f)\"$(${words[1]} bench --help=flags 2>/dev/null)\"})\n";
    } else {
      out += "      flags=(\n";
      for (const FlagWords& flag : command.flags)
        out += fmt::format("        {}\n", shell_quoted(flag.name + ":" + flag.text));
      out += "      )\n";
    }
    out += "      if [[ $current == -* ]]; then\n        _describe -o flag flags\n";
    if (command.takes_model) out += "      else\n        _quire_models\n";
    if (!command.words.empty())
      out += fmt::format("      else\n        compadd -- {}\n", fmt::join(command.words, " "));
    out += "      fi ;;\n";
  }
  return out +
         "  esac\n}\n"
         "if [[ $funcstack[1] == _quire ]]; then\n  _quire \"$@\"\nelse\n  compdef _quire quire\nfi\n";
}

std::string fish_completion(const std::vector<CommandWords>& commands) {
  std::string out = "# Completion of quire for fish: quire completion fish | source\ncomplete -c quire -f\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("complete -c quire -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       shell_quoted(command.text));
  }
  out += "complete -c quire -n __fish_use_subcommand -l help -d 'Print the help'\n";
  out += "complete -c quire -n __fish_use_subcommand -l version -d 'Print the version'\n";
  for (const CommandWords& command : commands) {
    const std::string begin = fmt::format("complete -c quire -n '__fish_seen_subcommand_from {}'", command.name);
    if (command.takes_model) out += begin + " -F -a 'stories (quire list --names 2>/dev/null)'\n";
    if (!command.words.empty()) out += fmt::format("{} -a '{}'\n", begin, fmt::join(command.words, " "));
    if (command.name == "bench") out += begin + " -a '(quire bench --help=flags 2>/dev/null)'\n";
    for (const FlagWords& flag : command.flags) {
      std::string value;
      switch (flag.value) {
        case ValueKind::kNone:
          break;
        case ValueKind::kText:
          value = " -x";
          break;
        case ValueKind::kChoice:
          value = fmt::format(" -x -a '{}'", fmt::join(flag.choices, " "));
          break;
        case ValueKind::kFile:
          value = " -r -F";
          break;
        case ValueKind::kDirectory:
          value = " -x -a '(__fish_complete_directories)'";
          break;
        case ValueKind::kModel:
          value = " -r -F -a 'stories (quire list --names 2>/dev/null)'";
          break;
      }
      out += fmt::format("{} -l {}{} -d {}\n", begin, flag.name.substr(2), value, shell_quoted(flag.text));
    }
  }
  return out;
}

}  // namespace quire::app
