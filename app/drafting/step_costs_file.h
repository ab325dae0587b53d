// Measured step costs, stored between starts: a text file beside the packed weights, valid for one model, numeric mode
// and machine.
// Shape   a version line, the key, one line per number of rows, and the number of those lines. Written to a temporary
//         file and renamed: a reader finds the old table or the new one.
// Thread  any, one call at a time.
// Fails   read: the reason why the file is not usable; `out` is unchanged. Write: the reason; the old file stays.
//         Neither keeps a server from starting or stopping.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/speculate/depth/step_costs.h"

namespace quire::app {

// Key of one line. A line break in an argument is our bug.
std::string step_costs_key(const std::string& numeric_mode, const std::string& cpu, std::uint32_t threads);

Result<Done> read_step_costs(const std::string& path, const std::string& key, speculate::StepCosts& out);
Result<Done> write_step_costs(const std::string& path, const std::string& key, const speculate::StepCosts& costs);

}  // namespace quire::app
