// Schedules run in child processes, because what is not true dies in a CHECK: the parent learns which schedule it was,
// takes it apart, and prints the smallest one that still dies.
// Thread  one, in a process without others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

namespace quire::sim {

struct Failure {
  Scenario scenario;
  std::uint64_t seed = 0;
  std::string message;  // the last line that the process said
};

// What went wrong, or nothing.
std::optional<std::string> run_apart(const Scenario& scenario);

// One for each core.
int num_processes();
// The schedules of seeds [first, first + count), in so many processes at once. The first failure met, or nothing.
std::optional<Failure> run_seeds(std::uint64_t first, std::uint64_t count, int processes, Counts& counts);

// As long as something can be left out or made smaller and it still fails, for at most a minute.
Failure shrink(Failure failure);

// "seed 7 dies: …; replay with …"
std::string report(const Failure& shrunk);

}  // namespace quire::sim
