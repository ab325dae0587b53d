// The field `messages`: a conversation, checked and put into the shape that templates read.
// Shape   {role, content, name?, tool_calls?, tool_call_id?, reasoning?, ...}; content is one text, its parts joined by line
//         breaks; an assistant's content that is missing or an empty list is null; reasoning stands under each of its three names.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the path of what is wrong. Members that nobody knows are passed over and told in the
//         warnings.
// Source  OpenAI's API reference; the names of reasoning are those that transformers fills in.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/chat/chat_request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::chat {

Result<Done> read_messages(const std::string& path, simdjson::dom::element, const Services&, ChatRequest&);

}  // namespace quire::api::chat
