// The error for a prompt that, together with its answer, exceeds the model's context. Its text is the one by which
// clients recognise it, so that they shorten the conversation and send it again.
// Thread  any; pure functions.
// Source  OpenAI's and Anthropic's texts; tests/wire/test_context_overflow.py has the parts that clients look for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

// `prompt_tokens` may be a lower bound. Error::param is prompt_field if the prompt alone is too long, else
// max_tokens_field.
Error context_overflow(const GenerationRequest& request, std::size_t prompt_tokens, const Services& services);

}  // namespace quire::api
