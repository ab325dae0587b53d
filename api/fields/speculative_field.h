// The field `speculative`: speculative decoding of one request. Only `accept` can change its answer.
// Shape   true: the server's default; false: off; an object: `method`, one of the server's or "none";
//         `num_speculative_tokens`, the most nodes of a draft, 0: off; `accept`, the acceptance rule of draft tokens.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, a member by its path: `speculative.method`. Unknown members are refused,
//         so that a benchmark does not measure another method than intended.
// Source  names of vLLM's speculative config; a field of a request is ours.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

Result<Done> read_speculative(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

}  // namespace quire::api
