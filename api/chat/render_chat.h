// POST /v1/chat/completions/render: the prompt and the parameters that a conversation would run with; nothing is run.
// Shape   the object of api/generation/render.h with "prompt", its text. The body is that of /v1/chat/completions.
// Thread  any (a worker); a pure function of the body, the Services and the current time, which templates may print.
// Fails   every fault is a response, as for /v1/chat/completions.
// Source  vLLM's path and members; "prompt" is ours.
#pragma once

#include <string>

#include "api/services/services.h"
#include "api/wire/exchange.h"

namespace quire::api::chat {

http::Response render(const Services& services, const std::string& body, Allowance& allowance);

}  // namespace quire::api::chat
