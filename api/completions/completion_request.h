// The range-checked body of POST /v1/completions. Plain data.
// Rules   a field is a row of a table, here or in fields/table.cc. A field of OpenAI's or vLLM's API that is not
//         supported is accepted at its neutral value and answered 400 at any other. Every refusal names its field.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument with param; kNotFound if the model is not served. Nothing is allocated past the limits.
// Source  OpenAI's API reference for completions; names and neutral values of vLLM's CompletionRequest.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/fields/field.h"
#include "api/fields/generation_request.h"
#include "api/fields/prompts.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

struct CompletionRequest : GenerationRequest {
  std::vector<Prompt> prompts;        // [1 .. max_prompts]; ids are in [0, logits_width)
  std::optional<std::string> suffix;  // fill in the middle: the text after the answer
};

// Fields of /v1/completions beyond shared_fields().
std::span<const Field> completion_fields();

Result<CompletionRequest> parse_completion_request(const std::string& body, const Services& services);

}  // namespace quire::api
