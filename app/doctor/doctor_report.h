// The checks of `quire doctor` as one page of text, and as JSON for programs.
// Shape   JSON: {"verdict": "slow", "checks": [{"name", "verdict", "text", "advice": text or null, "facts": {…}}]}
// Thread  any; pure.
#pragma once

#include <string>
#include <vector>

#include "app/doctor/checks.h"

namespace quire::app::doctor {

std::string report_text(const std::vector<Check>& checks);
std::string report_json(const std::vector<Check>& checks);

}  // namespace quire::app::doctor
