// The field `messages` of a chat: a conversation, checked and converted to the form that chat templates read.
// Shape   {role, content, name?, tool_calls?, tool_call_id?, reasoning?, ...}; content is one text, its parts joined by
//         line breaks; an assistant's content that is missing or an empty list is null, a tool's is ""; reasoning is
//         repeated under each of its three names.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of the faulty value. Unknown members are ignored and listed in
//         X-Quire-Warnings.
// Source  OpenAI's API reference; the names for reasoning are those of transformers.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<Done> read_messages(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

}  // namespace quire::api::chat
