// The fields `tools` and `tool_choice`: functions that the model may or must call. A function's members are either in
// an object `function`, as in a chat, or beside its type ("flat"), as in /v1/responses; these readers accept both.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of the faulty value.
// Source  OpenAI's API reference: up to 128 functions, names of up to 64 letters, digits, _ and -; ours: a dot, too,
//         because MCP servers use it.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services/services.h"
#include "core/base/json.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<Done> read_tools(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_tool_choice(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

// The same, for endpoints whose errors should name flat members.
Result<Done> read_flat_tools(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);
Result<Done> read_flat_tool_choice(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

// Reader of `tools` for endpoints with their own format. `read_one` gets a copy of each tool, adds its function to
// request.functions, and converts the tool to the form that templates read. False: the tool is not a function but one
// that a server would run; it is left out with a warning.
using ReadTool = Result<bool> (*)(const std::string& path, json::Object& tool, ChatRequest&);
Result<Done> read_tool_list(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&,
                            ReadTool read_one);
// Checks a function's name, description, schema (the member named `schema`) and `strict`, and adds the function to
// request.functions. `strict` is for the server, not for the model, and is removed from `members`.
Result<Done> add_function(const std::string& path, json::Object& members, const char* schema, ChatRequest& request);
// {"type": "function", "function": {name, description, parameters}}, whose values are moved out of `members`.
json::Object nested_function(json::Object& members, const char* schema);

// Called once all fields are read: checks that the chosen tools exist and that the server parses calls of this model,
// and removes functions that tool_choice does not allow.
Result<Done> settle_tools(ChatRequest& request, const Services& services);

}  // namespace quire::api::chat
