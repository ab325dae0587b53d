// The range-checked body of POST /v1/embeddings. Plain data.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument with param; kNotFound if the model is not served.
// Source  OpenAI's API reference for embeddings; `normalize` and the neutral values are vLLM's; `pooling` is ours, and
//         defaults to the last row, as vLLM's does for a generative model.
#pragma once

#include <cstdint>
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

struct EmbeddingRequest : GenerationRequest {
  std::vector<Prompt> inputs;               // [1 .. max_inputs], no text empty
  bool base64 = false;                      // false: a list of numbers
  std::optional<std::uint32_t> dimensions;  // 1 .. hidden_size; none: all
  bool normalize = true;
};

// Fields of /v1/embeddings beyond shared_fields().
std::span<const Field> embedding_fields();

Result<EmbeddingRequest> parse_embedding_request(const std::string& body, const Services& services);

}  // namespace quire::api
