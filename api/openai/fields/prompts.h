// What a request may give to be read by the model: a text, token ids, or a list of either.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field: another shape, an empty list, an id that the model has no row for, or more than
//         max_prompts.
// Source  the `prompt` of OpenAI's completions and the `input` of its embeddings.
#pragma once

#include <simdjson.h>

#include <string>
#include <variant>
#include <vector>

#include "api/services.h"
#include "core/base/ids.h"
#include "core/base/result.h"

namespace quire::api::openai {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

inline constexpr const char* kPromptsRange =
    "a text, a list of texts, of token ids, or of lists of token ids; at most 128 prompts";

Result<std::vector<Prompt>> prompts_of(const std::string& name, simdjson::dom::element value, const Services& services);

}  // namespace quire::api::openai
