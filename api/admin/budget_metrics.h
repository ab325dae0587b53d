// Series of Prometheus about budgets: bytes that requests hold before they run and after, jobs that read bodies, and
// refusals.
// Thread  any.
// Source  Prometheus text exposition format 0.0.4.
#pragma once

#include <string>

#include "api/services.h"

namespace quire::api::admin {

void append_budget_metrics(std::string& text, const Services& services);

}  // namespace quire::api::admin
