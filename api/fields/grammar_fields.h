// The fields that constrain the form of the answer. A body may have only one form, in one field or equal in several.
// Thread  any; pure functions. The grammar is compiled later, on a worker: api/services/grammars.h.
// Fails   kInvalidArgument naming the field, a nested one by its path: `response_format.json_schema`.
// Source  OpenAI's response_format; vLLM's structured_outputs and the guided_* fields that came before it.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

Result<Done> read_response_format(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
// The same with the schema's members beside the type, as in OpenAI's `text.format` and Anthropic's
// `output_config.format`.
Result<Done> read_flat_format(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_structured_outputs(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_json(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_regex(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_choice(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_grammar(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

}  // namespace quire::api
