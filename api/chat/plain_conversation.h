// Rewrites conversations for chat templates that lack tools, tool results, or system messages other than a first one.
// Shape   messages as templates get them, in and out. A blank line separates texts that are merged into one message.
// Thread  any; pure functions.
// Source  ours. Calls are written in the model's format (call_text.h), results as the Hermes and Qwen templates write
//         them (<tool_response>).
#pragma once

#include <cstdint>
#include <string>

#include "api/answer/calls/call_format.h"
#include "core/base/json.h"

namespace quire::api::chat {

// The system text that describes `tools` and the format of a call.
std::string text_of_tools(const json::Array& tools, CallFormat format);

// Calls become text after the content of their message.
json::Array with_calls_as_text(const json::Array& messages, CallFormat format);
// Consecutive tool results become one user message.
json::Array with_results_as_text(const json::Array& messages);

enum class SystemPlace : std::uint8_t {
  kFirst,   // leading system messages become one; later ones become user messages
  kNowhere  // all system messages become user messages
};
// Consecutive user messages are merged, for templates that require alternating roles.
json::Array with_system(SystemPlace place, const json::Array& messages);

// Appends `text` to the first system message, or inserts one.
void add_to_system(json::Array& messages, const std::string& text);

}  // namespace quire::api::chat
