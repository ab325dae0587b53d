// Prometheus series of the budgets: bytes that bodies and answers hold, jobs in the workers' lanes, and refusals.
// Thread  any.
// Source  Prometheus text exposition format 0.0.4.
#pragma once

#include <string>

#include "api/services/services.h"

namespace quire::api::admin {

void append_budget_metrics(std::string& text, const Services& services);

}  // namespace quire::api::admin
