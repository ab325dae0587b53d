// Command-line parsing shared by quire and quire-bench: configuration fields become flags of a command, the values
// typed become a layer of settings, and an unknown flag becomes a problem that names the nearest known one.
// Thread  main.
// Fails   every problem is collected.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "app/config/config_fields.h"

namespace quire::app {

// The values typed for each field, in order.
using Typed = std::map<std::string_view, std::vector<std::string>>;

// Adds the fields that commands of `bit` take as flags. `typed` must outlive `command`.
void add_fields(CLI::App& command, CommandSet bit, Typed& typed);

// The settings in `typed`, once `command` has parsed. An unknown flag is a problem, and so is a second MODEL.
Layer take_settings(const CLI::App& command, Typed& typed, Problems& problems);

// The field of a flag as typed: "--max_model_len=8" is max-model-len. Null if there is none.
const Field* field_named(const std::string& flag);

}  // namespace quire::app
