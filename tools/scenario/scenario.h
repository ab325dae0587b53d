// Scenarios: figures in a CSV on the work of scheduler, block pool and prefix index for a known mix of requests.
//   quire bench --scenario NAME [--csv FILE]
// Scenarios that count steps run no model and give the same file on every machine; scenarios that take times run one.
// Thread  main, in the engine's role.
// Fails   StartError: a file that cannot be written, a model that is too short.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/thread_role.h"
#include "tools/common/options.h"
#include "tools/scenario/table.h"

namespace quire::tools {

struct ScenarioSetup {
  const Config& config;
  std::uint32_t runs = 5;
  std::string random_shape;
  std::function<void(const std::string&)> progress;  // called with a short text on the current work
};

struct ScenarioReport {
  Table table;
  std::vector<std::string> summary;  // lines for printing
};

struct Scenario {
  std::string_view name;
  bool counts_steps;  // true: the table is the same on every machine
  ScenarioReport (*run)(const ScenarioSetup& setup);
};

std::span<const Scenario> scenarios();
const Scenario* find_scenario(std::string_view name);

// Runs the command: writes the CSV to the file or to standard output, and the summary to standard error.
int run_scenario(const Config& config, const BenchOptions& options);

// ---- one per file
ScenarioReport utilisation_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport waste_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport max_batch_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport preemption_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport policies_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);
ScenarioReport prefix_scenario(const ScenarioSetup& setup) REQUIRES(engine_role);

}  // namespace quire::tools
