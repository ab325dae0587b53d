// The prompts of a body: a text, token ids, or a list of either.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field: another shape, an empty list, an id outside [0, logits_width), or too
//         many.
// Source  the `prompt` of OpenAI's completions and the `input` of its embeddings.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "api/services/services.h"
#include "core/base/ids.h"
#include "core/base/result.h"

namespace quire::api {

using Prompt = std::variant<std::string, std::vector<TokenId>>;

inline constexpr const char* kPromptsRange =
    "a text, a list of texts, of token ids, or of lists of token ids; at most 128 prompts";
inline constexpr const char* kInputsRange =
    "a text, a list of texts, of token ids, or of lists of token ids; at most 2048 of them";

Result<std::vector<Prompt>> prompts_of(const std::string& name, simdjson::dom::element value, const Services& services,
                                       std::uint32_t most);

}  // namespace quire::api
