// Fields of a completion that say how many answers, and whether they are sampled or searched for.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field. A null never comes here, it means "not given".
// Source  OpenAI's n and best_of; vLLM's use_beam_search and length_penalty.
#pragma once

#include <simdjson.h>

#include <functional>
#include <string>
#include <string_view>

#include "api/openai/completion_request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> read_n(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);
Result<Done> read_best_of(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);
Result<Done> read_use_beam_search(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);
Result<Done> read_length_penalty(const std::string&, simdjson::dom::element, const Services&, CompletionRequest&);

using Given = std::function<bool(std::string_view field)>;  // it is in the body, and not null

// Once all fields are read: what they must be together, and what they mean for best_of and the sampling parameters.
Result<Done> settle_choices(CompletionRequest& request, const Services& services, const Given& given);

}  // namespace quire::api::openai
