// The range-checked body of POST /v1/messages and /v1/messages/count_tokens: a conversation, as in a chat.
// Owner   the request's MessagesFormatter.
// Thread  any; parsing is a pure function of the body and the Services.
// Fails   kInvalidArgument with the path of the field ("messages[2].content[0].type"); kNotFound if the model is not
//         served.
// Source  Anthropic's API reference for messages.
#pragma once

#include <span>
#include <string>

#include "api/chat/chat_request.h"
#include "api/fields/field.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api::messages {

struct MessagesRequest : chat::ChatRequest {
  MessagesRequest() { in_anthropics_words = true; }

  std::string system;  // empty: none
  // True if the last message is the assistant's and has text but no calls: the answer continues that message.
  bool ends_with_assistant = false;
};

Result<MessagesRequest> parse_messages_request(const std::string& body, const Services& services);
// The body of count_tokens, which has neither max_tokens nor fields about sampling.
Result<MessagesRequest> parse_count_request(const std::string& body, const Services& services);

// Fields of both paths beyond shared_fields().
std::span<const Field> messages_fields();

}  // namespace quire::api::messages
