// What steps cost, kept between starts: a text file beside the packed weights, good for one model, numeric mode and machine.
// Shape   a version line, the key, a line for each number of rows, and how many lines those were. Written beside itself and
//         renamed: a reader finds the old table or the new one.
// Thread  any, one at a time.
// Fails   reading: says why the file is of no use, and the costs stay as they were. Writing: says why, and the old file stays.
//         Neither is worth stopping for.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/speculate/depth/step_costs.h"

namespace quire::app {

// One line; line breaks in it are our bug.
std::string step_costs_key(const std::string& numeric_mode, const std::string& cpu, std::uint32_t threads);

Result<Done> read_step_costs(const std::string& path, const std::string& key, speculate::StepCosts& out);
Result<Done> write_step_costs(const std::string& path, const std::string& key, const speculate::StepCosts& costs);

}  // namespace quire::app
