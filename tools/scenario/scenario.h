// Scenarios: what the scheduler, the pool and the prefix index do for a known mix of requests, as figures in a CSV.
//   quire bench --scenario NAME [--csv FILE]
// Those that count steps run no model and give the same file on every machine; those that take the time run one.
// Thread  main, which is the engine's thread meanwhile.
// Fails   StartError: a file that cannot be written, a model that is too short.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/thread_role.h"
#include "tools/bench/options.h"
#include "tools/scenario/table.h"

namespace quire::tools {

struct ScenarioSetup {
  const Config& config;
  std::uint32_t runs = 5;
  std::string random_shape;
  std::function<void(const std::string&)> progress;  // a few words on what is being run
};

struct ScenarioReport {
  Table table;
  std::vector<std::string> summary;  // for people, a line each
};

struct Scenario {
  std::string_view name;
  bool counts_steps;  // and so its table is the same on every machine
  ScenarioReport (*run)(const ScenarioSetup& setup);
};

std::span<const Scenario> scenarios();
const Scenario* find_scenario(std::string_view name);
std::string scenario_names();  // "utilisation, waste, …"

// The command: its CSV to the file or to standard output, its summary to standard error.
int run_scenario(const Config& config, const BenchOptions& options);

// ---- one a file
ScenarioReport utilisation_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport waste_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport max_batch_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport preemption_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport policies_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport prefix_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);

}  // namespace quire::tools
