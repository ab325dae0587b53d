// The fields `messages` and `system` of /v1/messages: blocks of text, thinking, calls and results, converted to the
// messages that chat templates read.
// Shape   a user message with tool results becomes several messages: one of role tool for each result, one of role user
//         for the text between them.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of the faulty value.
// Source  Anthropic's API reference: text, thinking, redacted_thinking, tool_use, tool_result.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/messages/messages_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api::messages {

Result<Done> read_messages(const std::string& path, simdjson::dom::element, const Services&, MessagesRequest&);
Result<Done> read_system(const std::string& path, simdjson::dom::element, const Services&, MessagesRequest&);

}  // namespace quire::api::messages
