// The body of POST /v1/messages and of its count_tokens, read and range-checked: a conversation like chat's.
// Owner   the request's MessagesForm.
// Thread  any; parsing is a pure function of the body and the Services.
// Fails   kInvalidArgument with the path of the field ("messages[2].content[0].type"); kNotFound when the model is not served.
// Source  Anthropic's API reference for messages.
#pragma once

#include <span>
#include <string>

#include "api/chat/chat_request.h"
#include "api/openai/fields/field.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::messages {

struct MessagesRequest : chat::ChatRequest {
  MessagesRequest() { in_anthropics_words = true; }

  std::string system;  // empty: none
  // The last message is the assistant's and has text alone: the answer goes on with it.
  bool ends_with_assistant = false;
};

Result<MessagesRequest> parse_messages_request(const std::string& body, const Services& services);
// Of what is counted, not generated: max_tokens and all about sampling have no place there.
Result<MessagesRequest> parse_count_request(const std::string& body, const Services& services);

// The fields that only these two have.
std::span<const openai::Field> messages_fields();

}  // namespace quire::api::messages
