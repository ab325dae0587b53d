// The range-checked body of POST /v1/responses: a conversation, as in a chat, and the settings that the response
// repeats.
// Shape   members *_json are minified JSON as it was sent; functions in tools_json have their missing members added.
// Owner   the request's ResponsesFormatter.
// Thread  any; parsing is a pure function of the body and the Services.
// Fails   kInvalidArgument with the path of the field ("input[2].content[0].type"); kNotFound if the model is not
//         served.
// Source  OpenAI's API reference for responses. Nothing is stored, so fields that refer to something stored are
//         refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "api/chat/chat_request.h"
#include "api/fields/field.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api::responses {

struct ResponsesRequest : chat::ChatRequest {
  ResponsesRequest();

  std::optional<std::string> instructions;
  std::string tools_json = "[]";
  std::string tool_choice_json = "\"auto\"";
  std::string format_json = R"({"type":"text"})";
  std::string metadata_json = "{}";
  std::string reasoning_summary;  // empty: not given; likewise the next three
  std::string user;
  std::string safety_identifier;
  std::string prompt_cache_key;
};

Result<ResponsesRequest> parse_responses_request(const std::string& body, const Services& services);

// Fields of /v1/responses beyond shared_fields().
std::span<const Field> responses_fields();

}  // namespace quire::api::responses
