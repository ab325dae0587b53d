// The simulator as a program:
//   --replay TEXT                 one schedule, in this process, so that a debugger can look
//   --hunt COUNT [--first SEED]   so many schedules; one that fails is shrunk and printed, and the status is 1
#pragma once

#include <optional>

#include "tests/sim/world.h"

namespace quire::sim {

// The exit status; nothing when the arguments ask for neither.
std::optional<int> run_command(int argc, char** argv);

void print(const Counts& counts, double seconds);

}  // namespace quire::sim
