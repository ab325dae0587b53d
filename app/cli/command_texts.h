// Words and examples of each command, for its --help.
// Thread  any; the table is constant.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace quire::app {

struct Example {
  std::string_view line;  // a whole command line; at most 56 columns, so that a narrow terminal need not break it
  std::string_view text;
};

struct CommandText {
  std::string_view name;
  std::string_view words;  // after the flags: "[MODEL]"
  std::array<Example, 3> examples;
};

std::span<const CommandText> command_texts();
const CommandText* find_command_text(std::string_view name);

// Names of the fields that the first page of a long --help explains.
std::span<const std::string_view> most_used_fields();

}  // namespace quire::app
