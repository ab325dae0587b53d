// The field `input` of /v1/responses: a text, or a list of items, converted to the messages of a conversation.
// Shape   consecutive items of the assistant (reasoning, message, calls) become one message, as they were one answer.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of the faulty value.
// Source  OpenAI's API reference: message (also without a type), reasoning, function_call, function_call_output.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api::responses {

Result<Done> read_input(const std::string& path, simdjson::dom::element, const Services&, chat::ChatRequest&);

}  // namespace quire::api::responses
