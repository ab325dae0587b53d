// The field that says whether and how tokens of an answer are guessed ahead. No answer depends on it but by `accept`.
// Shape   true: as the server does; false: not at all; an object: `method`, one of the server's or "none",
//         `num_speculative_tokens`, the most that a draft may have; 0: no drafts; `accept`, how guesses are taken.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, as `speculative.method` where it lies deeper; what it does not know is refused, so
//         that nobody measures another method than the one meant.
// Source  names of vLLM's speculative config; a field of a request is ours.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> read_speculative(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

}  // namespace quire::api::openai
