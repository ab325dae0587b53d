// The log probabilities of a prompt's tokens in vLLM's shape: null for the first token, then for each token an object
// by token id with the token itself and its likeliest alternatives.
// Thread  any; pure function.
// Source  vLLM's prompt_logprobs; tokens of equal logit have equal rank, 1 + the number of likelier ones.
#pragma once

#include "api/fields/generation_request.h"
#include "api/generation/formatter.h"
#include "api/json/response_writer.h"
#include "core/text/tokenizer.h"

namespace quire::api {

// Writes them as the writer's next value. `prompt` has ids and scores; request.prompt_logprobs is the number of
// alternatives; `out` is the string of `writer`.
Writing write_prompt_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                              const PromptRun& prompt, const GenerationRequest& request);

// At least -9999, vLLM's substitute for -inf, which JSON cannot express.
float finite_logprob(float logprob);

}  // namespace quire::api
