// The fields `tools` and `tool_choice`: functions that the model may call, and whether it must.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of what is wrong.
// Source  OpenAI's API reference: names of 64 letters, digits, _ and - (and . , which MCP servers use), 128 functions.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<Done> read_tools(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_tool_choice(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

// Once all fields are read: what is chosen is there, and this model can be understood when it calls.
Result<Done> settle_tools(ChatRequest& request, const Services& services);

}  // namespace quire::api::chat
