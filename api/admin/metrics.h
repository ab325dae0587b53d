// GET /metrics and /version.
// Thread  any; pure functions of the Services.
#pragma once

#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api::admin {

http::Response metrics(const Services& services);
http::Response version(const Services& services);

}  // namespace quire::api::admin
