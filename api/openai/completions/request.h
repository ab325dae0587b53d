// The body of POST /v1/completions, read and range-checked. Plain data.
// Rules   a field is a row of the table, here or in fields/table.cc; what OpenAI or vLLM know and we do not is accepted at
//         its neutral value and answered 400 at any other. Every refusal names its field.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument with param; kNotFound when the model is not served. Nothing is allocated past the limits.
// Source  OpenAI's API reference for completions; names and neutral values of vLLM's CompletionRequest.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/openai/fields/field.h"
#include "api/openai/fields/prompts.h"
#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

struct CompletionRequest : GenerationRequest {
  std::vector<Prompt> prompts;        // [1 .. max_prompts]; ids are in [0, logits_width)
  std::optional<std::string> suffix;  // the answer stands between a prompt and this
};

// What /v1/completions has besides shared_fields().
std::span<const Field> completion_fields();

Result<CompletionRequest> parse_completion_request(const std::string& body, const Services& services);

}  // namespace quire::api::openai
