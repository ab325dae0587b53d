// The field `kv_policy`: the K and V that a long sequence keeps.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field, a member by its path: `kv_policy.window`. Unknown members are refused,
//         since the answer depends on the policy.
// Source  ours; core/flow/request.h names the policies' papers.
#pragma once

#include <simdjson.h>

#include <string>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

Result<Done> read_kv_policy(const std::string&, simdjson::dom::element, const Services&, GenerationRequest&);

}  // namespace quire::api
