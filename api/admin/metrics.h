// GET /metrics and /version.
// Thread  any; pure functions of the Services.
#pragma once

#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::admin {

http::Response metrics(const Services& services);
http::Response version(const Services& services);

}  // namespace quire::api::admin
