// Conversations for templates that know less than the request says: one system message at the beginning at most, or none; calls of
// tools and their results as text; tools in the system's text.
// Shape   messages as templates get them, in and out. Where a message's text moves, a blank line parts it from what it is put beside.
// Thread  any; pure functions.
// Source  ours. Text of calls and results as the templates of Hermes and Qwen write it (<tool_call>, <tool_response>), which is the
//         form that call_parser.h reads as kGeneric.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json.h"

namespace quire::api::chat {

// What tells a model of `tools`, and of how to call them.
std::string text_of_tools(const json::Array& tools);

// Calls behind the content of their message; results that follow each other as one message of the user.
json::Array with_calls_as_text(const json::Array& messages);

enum class SystemPlace : std::uint8_t {
  kFirst,   // a system message at the beginning has what the system says there; what it says later, the user says
  kNowhere  // the user says all of it
};
// Of the user's messages that follow each other one is made, for templates in which roles take turns.
json::Array with_system(SystemPlace place, const json::Array& messages);

// `text` said by the system at the beginning, behind what it says there already.
void add_to_system(json::Array& messages, const std::string& text);

}  // namespace quire::api::chat
