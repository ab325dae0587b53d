// Scripts with which a shell completes the words of a quire command line.
// Shape   made from the parser's own commands and options: names, choices of a field, files and directories where a
//         path is expected, names of downloaded models for MODEL. The flags of bench, which another program parses, are
//         asked from it when they are needed.
// Thread  any.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace quire::app {

// The kind of word that a flag takes.
enum class ValueKind { kNone, kText, kChoice, kFile, kDirectory, kModel };

struct FlagWords {
  std::string name;  // "--kv-cache-dtype"
  std::string text;  // the first sentence of its help
  ValueKind value;
  std::vector<std::string> choices;
};

struct CommandWords {
  std::string name;
  std::string text;
  std::vector<FlagWords> flags;
  bool takes_model = false;
  std::vector<std::string> words;  // instead of MODEL
};

std::vector<CommandWords> completion_words(const CLI::App& root);

// The script of a shell: "bash", "zsh" or "fish"; empty for another name.
std::string completion_script(std::string_view shell, const CLI::App& root);

std::string bash_completion(const std::vector<CommandWords>& commands);
std::string zsh_completion(const std::vector<CommandWords>& commands);
std::string fish_completion(const std::vector<CommandWords>& commands);

}  // namespace quire::app
