// The options of `quire bench` itself: from what was typed to BenchOptions, and which of them a mode takes.
// Thread  main.
// Fails   every problem is collected.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands.h"
#include "app/config.h"

namespace quire::app {

// One of the flags below, as it is typed; where it may stand, bit by BenchMode; what --help says.
struct BenchFlag {
  std::string_view name;  // "--streams"
  unsigned modes;         // of these modes; 0: of scenarios alone
  std::string_view kind;  // "count"
  std::string_view help;
};

std::span<const BenchFlag> bench_flags();
std::string bench_mode_names();  // "runner, micro, step, profile, serve, compare"

// What was typed of each flag, in the order of bench_flags(): nothing, a value, or for --url several.
using TypedBenchFlags = std::vector<std::vector<std::string>>;

BenchOptions read_bench_options(const TypedBenchFlags& typed, bool json, Problems& problems);

}  // namespace quire::app
