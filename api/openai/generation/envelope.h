// What OpenAI-shaped answers begin with and have in common: bodies and stream events alike.
// Thread  any; pure functions. Each appends to JSON that is being written front to back.
// Source  OpenAI's API reference; stop_reason, prompt_token_ids and token_ids are vLLM's, seed is ours.
#pragma once

#include <string>

#include "api/openai/generation/form.h"
#include "api/openai/response_writer.h"

namespace quire::api::openai {

struct Envelope {
  const char* id_prefix;  // "cmpl-"
  const char* object;     // "text_completion"
};

// `{"id":…`, and the timings once they are there, up to what is particular to the endpoint; the object stays open.
void append_head(std::string& json, const Envelope& envelope, const AnswerFacts& facts);
// `,"usage":{…}`.
void append_usage(std::string& json, const Usage& usage);

// Of a choice that is being written.
void append_finish(JsonWriter& writer, const Piece& piece);     // finish_reason, and stop_reason once it has ended
void append_token_ids(JsonWriter& writer, const Piece& piece);  // prompt_token_ids at first, token_ids

}  // namespace quire::api::openai
