// The body of POST /v1/embeddings, read and range-checked. Plain data.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument with param; kNotFound when the model is not served.
// Source  OpenAI's API reference for embeddings; `normalize` and the neutral values are vLLM's, `pooling` is ours. Without it
//         the last row is taken, as vLLM does with a model that generates.
#pragma once

#include <cstdint>
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

struct EmbeddingRequest : GenerationRequest {
  std::vector<Prompt> inputs;               // [1 .. max_inputs], no text empty
  bool base64 = false;                      // else numbers
  std::optional<std::uint32_t> dimensions;  // 1 .. hidden_size; none: all
  bool normalize = true;
};

// What /v1/embeddings has besides shared_fields().
std::span<const Field> embedding_fields();

Result<EmbeddingRequest> parse_embedding_request(const std::string& body, const Services& services);

}  // namespace quire::api::openai
