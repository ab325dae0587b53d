// The members that OpenAI-shaped answers have in common, in bodies and in stream events.
// Thread  any; pure functions. Each appends to JSON that is being written front to back.
// Source  OpenAI's API reference; stop_reason, prompt_token_ids and token_ids are vLLM's, seed is ours.
#pragma once

#include <string>

#include "api/generation/formatter.h"
#include "api/json/response_writer.h"

namespace quire::api {

struct Envelope {
  const char* id_prefix;  // "cmpl-"
  const char* object;     // "text_completion"
};

// Appends `{"id":…` up to the members of the endpoint, with the timings if there are any; the object stays open.
void append_head(std::string& json, const Envelope& envelope, const AnswerFacts& facts);
// Appends `,"usage":{…}`.
void append_usage(std::string& json, const Usage& usage);

// Append members of a choice's object: finish_reason, with stop_reason once it has ended; token_ids, with
// prompt_token_ids in the first delta.
void append_finish(JsonWriter& writer, const ChoiceDelta& delta);
void append_token_ids(JsonWriter& writer, const ChoiceDelta& delta);

}  // namespace quire::api
