// Fields with several values (texts, token ids, biases, stream options), and `model`, which must be a served name.
// Shape   no value is null: a null field counts as not given.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, a member by its path: `stream_options.include_usage`; read_model():
//         kNotFound.
// Source  OpenAI's and vLLM's names.
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

Result<Done> read_model(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_stop(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_stop_token_ids(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_allowed_token_ids(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_bad_words(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_logit_bias(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);
Result<Done> read_stream_options(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

// A list of at most `most` token ids, each in [0, logits_width).
Result<std::vector<TokenId>> token_ids_of(const std::string& path, simdjson::dom::element value,
                                          const Services& services, std::size_t most);

}  // namespace quire::api
