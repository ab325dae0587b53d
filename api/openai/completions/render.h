// POST /v1/completions/render: what each prompt of a completion would run, without an answer to it.
// Shape   a list of what api/openai/generation/render.h tells, in the order of the prompts. The body is that of
//         /v1/completions.
// Thread  any (a worker); a pure function of the body and the Services.
// Fails   every fault is a response, as for /v1/completions.
// Source  vLLM's path and shape.
#pragma once

#include <string>

#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::openai {

http::Response render_completion(const Services& services, const std::string& body, Allowance& allowance);

}  // namespace quire::api::openai
