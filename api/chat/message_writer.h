// The parts of a chat answer as JSON: messages, deltas, log probabilities.
// Thread  any; pure functions. Each appends to JSON that is being written front to back.
// Source  OpenAI's chat completions; reasoning stands under vLLM's newer name and under the one that most clients read.
#pragma once

#include <functional>
#include <string>

#include "api/chat/answer/answer_parts.h"
#include "api/openai/generation/choice.h"
#include "api/openai/generation/writing.h"
#include "api/openai/response_writer.h"
#include "core/text/tokenizer.h"

namespace quire::api::chat {

using IdOf = std::function<std::string(std::size_t call)>;

// As the next value: an assistant's message. Content is null where there are only reasoning or calls.
void append_message(openai::JsonWriter& writer, const AnswerParts& parts, const IdOf& id_of);
// As the next value: what a stream's choice says next.
void append_delta(openai::JsonWriter& writer, const Delta& delta, const IdOf& id_of);

// As the next value: [{token, logprob, bytes, top_logprobs}], `num_top` likeliest of each.
void append_token_logprobs(openai::JsonWriter& writer, const text::Tokenizer& tokenizer,
                           const openai::SaidTokens& tokens, std::size_t num_top, bool names_are_ids);
// As the next value: {"content": those}.
void append_chat_logprobs(openai::JsonWriter& writer, const text::Tokenizer& tokenizer,
                          const openai::SaidTokens& tokens, std::size_t num_top, bool names_are_ids);
// The same, in parts of `out`, which the writer writes to.
openai::Writing write_chat_logprobs(openai::JsonWriter& writer, const std::string& out,
                                    const text::Tokenizer& tokenizer, openai::SaidTokens tokens, std::size_t num_top,
                                    bool names_are_ids);

}  // namespace quire::api::chat
