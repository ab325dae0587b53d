// The log probabilities of a completion's tokens in the shape of OpenAI's completions: four lists, one entry a token.
// Shape   an echoed prompt's tokens come first, the very first of them with null for both probabilities. top_logprobs maps
//         texts of tokens: the likeliest, and the token itself, which wins where another is spelled like it. text_offset
//         counts code points from the beginning of the choice's text.
// Thread  any; pure functions.
// Source  OpenAI's completions; vLLM's -9999.0 for what cannot be.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/openai/generation/form.h"
#include "api/openai/response_writer.h"
#include "core/text/tokenizer.h"

namespace quire::api::openai {

struct TokenScore {
  TokenId id = -1;
  std::optional<float> logprob;          // none: the first of a prompt
  std::span<const flow::Candidate> top;  // likeliest first
  std::size_t offset = 0;
};

// Of an echoed prompt that was scored; no offset lies behind `echo_length`. `num_top` at most are told of each token.
std::vector<TokenScore> prompt_token_scores(const PromptRun& prompt, std::shared_ptr<const text::Tokenizer> tokenizer,
                                            const GenerationRequest& request, std::size_t echo_length);
// Of an answer behind an echo of that length.
std::vector<TokenScore> answer_token_scores(const SaidTokens& tokens, const GenerationRequest& request,
                                            std::size_t echo_length);

// As the next value: the lists of all of them, in parts of `out`, which the writer writes to.
Writing write_text_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                            std::span<const TokenScore> tokens, bool names_are_ids);

}  // namespace quire::api::openai
