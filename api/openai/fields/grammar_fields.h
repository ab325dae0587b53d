// Fields that say what form the answer must have. One of them at a time.
// Thread  any; pure functions. The grammar itself is compiled later, on a worker: generation/grammars.h.
// Fails   kInvalidArgument naming the field, as `response_format.json_schema` where it lies deeper.
// Source  OpenAI's response_format; vLLM's structured_outputs and the guided_* fields that came before it.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> read_response_format(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
// The same with the schema's members beside the type, as `text.format` and `output_config.format` have it.
Result<Done> read_flat_format(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_structured_outputs(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_json(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_regex(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_choice(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_guided_grammar(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

}  // namespace quire::api::openai
