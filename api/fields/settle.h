// The last step of reading a body: checks the combination of its fields, and sets values that depend on several of
// them.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field that cannot be combined with another.
#pragma once

#include <cstddef>

#include "api/fields/generation_request.h"
#include "api/fields/read_body.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

Result<Done> settle(GenerationRequest& request, std::size_t num_prompts, const Services& services, const Given& given);

}  // namespace quire::api
