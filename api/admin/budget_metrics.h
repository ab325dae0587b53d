// What requests hold of the server before they run and after, and what was refused for it, as series of Prometheus.
// Thread  any.
// Source  Prometheus text exposition format 0.0.4.
#pragma once

#include <string>

#include "api/services.h"

namespace quire::api::admin {

void append_budget_metrics(std::string& text, const Services& services);

}  // namespace quire::api::admin
