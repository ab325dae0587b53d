// What the command lines of our programs have in common: fields of the configuration become flags of a command, what was typed becomes
// a layer of settings, and a flag that the command does not have becomes a problem that names the nearest one.
// Thread  main.
// Fails   every problem is collected.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"
#include "app/config_fields.h"

namespace quire::app {

// What was typed, by field.
using Typed = std::map<std::string_view, std::vector<std::string>>;

// The fields that commands of `bit` take. `typed` has to live as long as `command`.
void add_fields(CLI::App& command, CommandSet bit, Typed& typed);

// The settings in `typed`, once `command` has parsed. A flag that it does not have is a problem, and so is a second MODEL.
Layer take_settings(const CLI::App& command, Typed& typed, Problems& problems);

// A field by its flag as people type it: "--max_model_len=8" is max-model-len. Null where there is none.
const Field* field_named(const std::string& flag);

}  // namespace quire::app
