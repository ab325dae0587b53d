// The body of POST /v1/completions, read and range-checked. Plain data.
// Rules   what we honour is a field below; what OpenAI or vLLM know and we do not yet is accepted at its neutral value and
//         answered 400 at any other; everything else is answered 400. Every refusal names its field.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument with param; kNotFound when the model is not served. Nothing is allocated past the limits.
// Source  OpenAI's API reference for completions; names and neutral values of vLLM's CompletionRequest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/services.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/sample/params.h"

namespace quire::api::openai {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::string model;            // one of the served names
  std::vector<Prompt> prompts;  // [1 .. max_prompts]; ids are in [0, logits_width)
  std::optional<std::uint32_t> max_tokens;
  sample::Params sampling;  // the server's defaults where the body says nothing; seed is not set here
  std::optional<std::int64_t> seed;
  std::vector<std::string> stop;  // none of them empty
  bool stream = false;
  bool include_usage = false;
  bool ignore_eos = false;
};

Result<CompletionRequest> parse_completion_request(const std::string& body, const Services& services);

}  // namespace quire::api::openai
