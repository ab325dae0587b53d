// The field `input`: a text, or a list of items, as the messages of a conversation.
// Shape   an assistant's reasoning, message and calls that follow each other are one message, as the answer that they were.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of what is wrong.
// Source  OpenAI's API reference: message (also without a type), reasoning, function_call, function_call_output.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::responses {

Result<Done> read_input(const std::string& path, simdjson::dom::element, const Services&, chat::ChatRequest&);

}  // namespace quire::api::responses
