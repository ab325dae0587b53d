// The fields `messages` and `system`: blocks of text, thinking, calls and their results as the messages that templates read.
// Shape   a user's message with results of tools becomes several: a tool's for each result, the user's for the text between them.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of what is wrong.
// Source  Anthropic's API reference: text, thinking, redacted_thinking, tool_use, tool_result.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/messages/messages_request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::messages {

Result<Done> read_messages(const std::string& path, simdjson::dom::element, const Services&, MessagesRequest&);
Result<Done> read_system(const std::string& path, simdjson::dom::element, const Services&, MessagesRequest&);

}  // namespace quire::api::messages
