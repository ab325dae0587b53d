// The fields `tools` and `tool_choice`: functions that the model may call, and whether it must. Members of a function
// may stand beside its type, as in /v1/responses, or in an object of their own, as in a chat.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of what is wrong.
// Source  OpenAI's API reference: names of 64 letters, digits, _ and - (and . , which MCP servers use), 128 functions.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services.h"
#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<Done> read_tools(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_tool_choice(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

// Likewise, where errors name the members beside the type.
Result<Done> read_flat_tools(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_flat_tool_choice(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

// For endpoints that write tools in their own way. `read_one` is given a copy of each; it puts the function to the
// request's, and leaves the tool as templates read it. False: it is no function, but a tool that a server would run,
// and left out.
using ReadTool = Result<bool> (*)(const std::string& path, json::Object& tool, ChatRequest&);
Result<Done> read_tool_list(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&,
                            ReadTool read_one);
// A function's name, description, schema (under that name) and strictness, checked, and put to the request's functions.
// `strict`, which is for us alone, is taken out of `members`.
Result<Done> add_function(const std::string& path, json::Object& members, const char* schema, ChatRequest& request);
// {"type": "function", "function": {name, description, parameters}} of such members.
json::Object nested_function(json::Object& members, const char* schema);

// Once all fields are read: what is chosen is there, and this model can be understood when it calls.
Result<Done> settle_tools(ChatRequest& request, const Services& services);

}  // namespace quire::api::chat
