// The command line of quire-bench, typed as `quire bench`: its own options, and a layer of settings.
// Thread  main.
// Fails   every problem is collected; unknown flags name the nearest known one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "tools/common/options.h"

namespace quire::tools {

struct CommandLine {
  std::optional<std::string> help;  // text to print instead of running
  app::Layer flags;
  BenchOptions bench;
};

// `args`: the words after `quire bench`.
CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems);

}  // namespace quire::tools
