// POST /v1/chat/completions/render: the prompt that a conversation becomes, without an answer to it.
// Shape   what api/openai/generation/render.h tells, and "prompt": its text. The body is that of /v1/chat/completions.
// Thread  any (a worker); a pure function of the body, the Services and the time of day, which templates may print.
// Fails   every fault is a response, as for /v1/chat/completions.
// Source  vLLM's path and members; "prompt" is ours.
#pragma once

#include <string>

#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::chat {

http::Response render(const Services& services, const std::string& body, Allowance& allowance);

}  // namespace quire::api::chat
