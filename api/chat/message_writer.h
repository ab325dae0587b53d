// JSON of the parts of a chat answer: messages, deltas, log probabilities.
// Thread  any; pure functions that append to JSON written front to back.
// Source  OpenAI's chat completions; reasoning is written twice: as `reasoning`, vLLM's newer name, and as
//         `reasoning_content`, which most clients read.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/answer/parts/answer_parts.h"
#include "api/generation/choice.h"
#include "api/json/response_writer.h"
#include "api/wire/writing.h"
#include "core/text/tokenizer.h"

namespace quire::api::chat {

using IdOf = std::function<std::string(std::size_t call, std::string_view name)>;

// Writes an assistant message as the next value. `content` is null if there are only reasoning or calls.
void append_message(JsonWriter& writer, const AnswerParts& parts, const IdOf& id_of);
// Writes the next delta of a streamed choice as the next value.
void append_delta_object(JsonWriter& writer, const Delta& delta, const IdOf& id_of);

// Writes [{token, logprob, bytes, top_logprobs}] as the next value, with the `num_top` likeliest tokens of each.
void append_token_logprobs(JsonWriter& writer, const text::Tokenizer& tokenizer, const AnswerTokens& tokens,
                           std::size_t num_top, bool names_are_ids);
// Writes {"content": that list, "refusal": null} as the next value.
void append_chat_logprobs(JsonWriter& writer, const text::Tokenizer& tokenizer, const AnswerTokens& tokens,
                          std::size_t num_top, bool names_are_ids);
// The same, in parts (writing.h); `writer` appends to `out`.
Writing write_chat_logprobs(JsonWriter& writer, const std::string& out, const text::Tokenizer& tokenizer,
                            AnswerTokens tokens, std::size_t num_top, bool names_are_ids);

}  // namespace quire::api::chat
