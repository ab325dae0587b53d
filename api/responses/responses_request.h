// The body of POST /v1/responses, read and range-checked: a conversation like chat's, and what the answer says again of it.
// Shape   members that are JSON are as they were sent, without white space.
// Owner   the request's ResponsesForm.
// Thread  any; parsing is a pure function of the body and the Services.
// Fails   kInvalidArgument with the path of the field ("input[2].content[0].type"); kNotFound when the model is not served.
// Source  OpenAI's API reference for responses. Nothing is stored, so that what goes on from something stored is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "api/chat/chat_request.h"
#include "api/openai/fields/field.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::responses {

struct ResponsesRequest : chat::ChatRequest {
  ResponsesRequest();

  std::optional<std::string> instructions;
  std::string tools_json = "[]";
  std::string tool_choice_json = "\"auto\"";
  std::string format_json = R"({"type":"text"})";
  std::string metadata_json = "{}";
  std::string reasoning_summary;  // empty: not said
  std::string user;               // these three, too
  std::string safety_identifier;
  std::string prompt_cache_key;
};

Result<ResponsesRequest> parse_responses_request(const std::string& body, const Services& services);

// The fields that only responses have.
std::span<const openai::Field> responses_fields();

}  // namespace quire::api::responses
