// Log probabilities of a completion's tokens in the shape of OpenAI's completions: four lists, one entry per token.
// Shape   tokens of an echoed prompt come first; the prompt's first token has null for its log probability and its
//         top_logprobs. top_logprobs maps texts of tokens to log probabilities: of the likeliest tokens and of the
//         token itself. Of tokens with equal text one is written: the token itself, else the likeliest. text_offset
//         counts code points from the beginning of the choice's text.
// Thread  any; pure functions.
// Source  OpenAI's completions; -inf is written as vLLM's -9999.0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/generation/formatter.h"
#include "api/json/response_writer.h"
#include "core/text/tokenizer.h"

namespace quire::api {

struct TokenScore {
  TokenId id = -1;
  std::optional<float> logprob;          // none: first token of a prompt
  std::span<const flow::Candidate> top;  // likeliest first
  std::size_t offset = 0;                // text_offset
};

// Tokens of an echoed prompt that was scored: at most request.logprobs candidates each, offsets at most `echo_length`
// code points.
std::vector<TokenScore> prompt_token_scores(const PromptRun& prompt, std::shared_ptr<const text::Tokenizer> tokenizer,
                                            const GenerationRequest& request, std::size_t echo_length);
// Tokens of an answer; `echo_length` code points of echoed prompt precede its text.
std::vector<TokenScore> answer_token_scores(const AnswerTokens& tokens, const GenerationRequest& request,
                                            std::size_t echo_length);

// Writes the four lists as the next JSON value, in parts (writing.h); `writer` appends to `out`.
Writing write_text_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                            std::span<const TokenScore> tokens, bool names_are_ids);

}  // namespace quire::api
