// The command line of quire-bench, which people type as `quire bench`: its own options, and a layer of settings.
// Thread  main.
// Fails   every problem is collected; unknown flags name the nearest known one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "tools/bench/options.h"

namespace quire::tools {

struct CommandLine {
  std::optional<std::string> help;  // to be printed instead of all else
  app::Layer flags;
  BenchOptions bench;
};

// `args`: what follows `quire bench`.
CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems);

}  // namespace quire::tools
