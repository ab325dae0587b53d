#include "tools/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr Scenario kScenarios[] = {
    {"utilisation", true, utilisation_scenario}, {"waste", true, waste_scenario},
    {"max-batch", false, max_batch_scenario},    {"preemption", true, preemption_scenario},
    {"policies", true, policies_scenario},       {"prefix", false, prefix_scenario},
};

static_assert(std::ranges::equal(kScenarios, kScenarioNames, {}, &Scenario::name));

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

const Scenario* find_scenario(std::string_view name) {
  const auto at = std::ranges::find(kScenarios, name, &Scenario::name);
  return at == std::end(kScenarios) ? nullptr : at;
}

int run_scenario(const Config& config, const BenchOptions& options) {
  const Scenario* const scenario = find_scenario(options.scenario);
  CHECK(scenario != nullptr);  // checked by the command line
  std::ofstream file;
  if (!options.csv.empty()) {  // opened first, so that it fails before the scenario runs
    file.open(options.csv, std::ios::binary);
    if (!file) throw StartError(fmt::format("--csv {}: cannot be written", options.csv));
  }
  const RoleScope role(engine_role);
  const ScenarioReport report = [&] {
    Progress progress(scenario->name);
    return scenario->run(
        {config, options.runs, options.random_shape, [&](const std::string& what) { progress.say(what); }});
  }();
  const std::string csv = report.table.csv();
  if (options.csv.empty()) {
    std::fwrite(csv.data(), 1, csv.size(), stdout);
  } else if (!file.write(csv.data(), static_cast<std::streamsize>(csv.size())).flush()) {
    throw StartError(fmt::format("--csv {}: cannot be written completely", options.csv));
  }
  for (const std::string& line : report.summary) fmt::print(stderr, "{}\n", line);
  return 0;
}

}  // namespace quire::tools
