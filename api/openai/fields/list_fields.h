// Fields that are more than one value: texts, token ids, biases, options of a stream; and the model, which is looked up.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, as `stream_options.include_usage` where it lies deeper; read_model():
//         kNotFound. A null never comes here, it means "not given".
// Source  OpenAI's and vLLM's names.
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> read_model(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_stop(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_stop_token_ids(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_allowed_token_ids(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_bad_words(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_logit_bias(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_stream_options(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

// A list of token ids that the model has a row for, at most `most` of them.
Result<std::vector<TokenId>> token_ids_of(const std::string& path, simdjson::dom::element value,
                                          const Services& services, std::size_t most);

}  // namespace quire::api::openai
