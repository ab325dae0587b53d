// POST /v1/chat/completions/render: the prompt that a conversation becomes, without an answer to it.
// Shape   {"model", "prompt", "prompt_token_ids", "count", "max_model_len"}; the body is that of /v1/chat/completions.
// Thread  any (a worker); a pure function of the body, the Services and the time of day, which templates may print.
// Fails   every fault is a response, as for /v1/chat/completions; a prompt that is too long for the model is none.
// Source  vLLM has the path; the shape is ours, with /tokenize's `count`.
#pragma once

#include <string>

#include "api/http/exchange.h"
#include "api/services.h"

namespace quire::api::chat {

http::Response render(const Services& services, const std::string& body);

}  // namespace quire::api::chat
