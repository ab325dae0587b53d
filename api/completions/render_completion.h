// POST /v1/completions/render: the token ids and parameters that each prompt would run with; nothing is run.
// Shape   a list with one object of api/generation/render.h per prompt, in order. The body is that of /v1/completions.
// Thread  any (a worker); a pure function of the body and the Services.
// Fails   every fault is a response, as for /v1/completions.
// Source  vLLM's path and shape.
#pragma once

#include <string>

#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api {

http::Response render_completion(const Services& services, const std::string& body, Allowance& allowance);

}  // namespace quire::api
