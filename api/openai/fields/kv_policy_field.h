// The field that says which K and V a long sequence keeps.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, as `kv_policy.window` where it lies deeper; what it does not know is refused,
//         since an answer under another policy than the one meant is another answer.
// Source  ours, see core/flow/request.h.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> read_kv_policy(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

}  // namespace quire::api::openai
