// An Inspection as text for a terminal, and as JSON for programs: the same facts, every count and size a JSON number.
// Thread  any; pure.
#pragma once

#include <string>

#include "app/inspection/inspection.h"

namespace quire::app {

// with_tensors: with a row for each tensor of the checkpoint.
std::string inspection_text(const Inspection& seen, bool with_tensors);
std::string inspection_json(const Inspection& seen, bool with_tensors);

}  // namespace quire::app
