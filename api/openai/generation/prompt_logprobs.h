// The log probabilities of a prompt's tokens in vLLM's shape: null for the first token, then for each the token itself and
// its likeliest alternatives, as an object by token id.
// Thread  any; pure function.
// Source  vLLM's prompt_logprobs; tokens of equal logit have equal rank, 1 + the number of likelier ones.
#pragma once

#include "api/openai/generation/form.h"
#include "api/openai/generation/request.h"
#include "api/openai/response_writer.h"
#include "core/text/tokenizer.h"

namespace quire::api::openai {

// As the next value. The prompt has its ids and scores, and request.prompt_logprobs says how many alternatives.
Writing write_prompt_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                              const PromptRun& prompt, const GenerationRequest& request);

// What stands for -inf, which JSON cannot say.
float told_logprob(float logprob);

}  // namespace quire::api::openai
