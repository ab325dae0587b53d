// The pages of --help, made from the parser's own options, the table of fields and command_texts.h.
// Shape   options stand in the groups of the fields. A command with many options has a first page with the settings
//         that are used most and the names of all; --help=all has everything. Colours and control characters are not
//         used, so that a page can be piped.
// Thread  any.
// Fails   command_help(): a topic that is neither a group nor a part of a flag's name.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace quire::app {

std::string root_help(const CLI::App& root, std::size_t width);

// topic: empty: the first page; "all"; "flags": all names, one a line; a group's; or a flag's name or a part of it.
Result<std::string> command_help(const CLI::App& command, std::string_view topic, std::size_t width);

// The topic that a word such as "--help=memory" asks for; empty for "--help" and "-h". Null if it is another word.
const char* help_topic(const std::string& word);

// The visible options that are flags, in the order of the parser.
std::vector<const CLI::Option*> visible_options(const CLI::App& command);
std::string flag_name(const CLI::Option& option);  // "--max-model-len"

}  // namespace quire::app
