// The refusal of a prompt that, with its answer, is longer than the model's context: in the words by which programs
// know it, so that they shorten the conversation and ask again.
// Thread  any; pure functions.
// Source  OpenAI's and Anthropic's wordings; tests/wire/test_context_overflow.py has what programs look for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

// `prompt_tokens`: at least so many. Error::param is the prompt's field where it is too long by itself, else
// max_tokens'.
Error context_overflow(const GenerationRequest& request, std::size_t prompt_tokens, const Services& services);

}  // namespace quire::api::openai
