// The checks on the surroundings of a server: open files, ports, the cache of models and proxies.
// Thread  any; pure.
#pragma once

#include <vector>

#include "app/doctor/checks.h"

namespace quire::app::doctor {

std::vector<Check> place_checks(const Facts& facts);

}  // namespace quire::app::doctor
